"""Edits of a ledger's rows: what is about to be sent, what was read back, what is remembered."""

from datetime import UTC, datetime
from math import nan
from typing import Any

import pytest

from quota_ops.model.plans import ledger_edits
from quota_ops.model.plans.ledger_edits import (
    ALTERED,
    CLEARED,
    INTENDED,
    VERIFIED,
    LedgerKey,
    ledger_key,
    was_cleared,
)
from quota_ops.model.plans.policy import Memory
from quota_ops.model.quotas.difference import Kind
from quota_ops.model.quotas.rows import Key, LedgerRow
from tests.unit.report_sample import ALICE_RAISED

KEY = "producer_byte_rate"


def row(entity: str, value: float | None, state: str = VERIFIED, **fields: Any) -> LedgerRow:
    """Return a row of the ledger; unless `sequence` is given, an intent is later than the rest."""
    number = {VERIFIED: 1, INTENDED: 2, ALTERED: 2}.get(state)
    when: dict[str, Any] = {"run": "run-1", "at": "2026-11-01T00:00:00Z", "sequence": number}
    made = LedgerRow("id", entity, KEY, value, state, "team", "team.yaml", "c0ffee", **when)
    return made._replace(**fields)


def rows(*given: LedgerRow) -> dict[LedgerKey, LedgerRow]:
    """Return rows as an edit receives them."""
    return {ledger_key(one): one for one in given}


def test_a_later_run_wins() -> None:
    """A value read back by an earlier run replaces none that a later run has verified.

    A later run that has only noted what it will send has verified nothing.
    """
    later, earlier = row("user=a", 2.0, sequence=2), row("user=a", 1.0, sequence=1)
    known = rows(later)

    ledger_edits.confirm(known, [earlier, earlier._replace(sequence=None)])
    assert known == rows(later)

    ledger_edits.confirm(known, [earlier._replace(sequence=3)])
    assert known == rows(earlier._replace(sequence=3))

    intent = row("user=a", 2.0, INTENDED, sequence=4)
    known = rows(intent)
    ledger_edits.confirm(known, [earlier])
    assert known == rows(earlier, intent)


def test_an_intent_stands_beside_what_was_verified() -> None:
    """An intent is kept next to the verified value, and next to intents of other runs."""
    known = rows(row("user=a", 1.0))

    ledger_edits.intend(known, [row("user=a", 2.0, INTENDED)], {Key("user=a", KEY): 1.0})

    assert known == rows(row("user=a", 1.0), row("user=a", 2.0, INTENDED))


def test_managed_rows() -> None:
    """A row is managed once it was verified or its intent arrived; a clear that arrived ends it."""
    known = [
        row("user=verified", 1.0),
        row("user=arrived", 2.0, INTENDED),
        row("user=replaced", 1.0),
        row("user=replaced", 2.0, INTENDED),
        row("user=sent", 2.0, INTENDED),
        row("user=cleared", 1.0),
        row("user=cleared", None, INTENDED),
        row("user=remembered", 1.0, CLEARED),
        row("user=late", 2.0, INTENDED, sequence=1, run="run-0"),
        row("user=late", 9.0, INTENDED),
    ]
    stored = {Key(f"user={name}", KEY): 2.0 for name in ("arrived", "replaced", "late")}

    managed = ledger_edits.find_managed(known, stored)

    assert list(managed.values()) == [known[0], known[3], known[1]]


@pytest.mark.parametrize(
    ("stored", "verified"),
    [
        ({Key("user=a", KEY): 2.0}, row("user=a", 2.0, run="run-2", sequence=2)),
        ({Key("user=a", KEY): 1.0}, row("user=a", 1.0)),
        ({}, row("user=a", 1.0)),
    ],
)
def test_an_earlier_intent_is_kept(stored: dict[Key, float], verified: LedgerRow) -> None:
    """Before another intent replaces it, an intent that arrived counts as read back.

    Whether it did or not, it may still arrive, and is remembered.
    """
    earlier = row("user=a", 2.0, INTENDED, run="run-2")
    known = rows(row("user=a", 1.0), earlier)
    later = row("user=a", 3.0, INTENDED, sequence=3)

    ledger_edits.intend(known, [later], stored)

    assert known == rows(verified, earlier, later)
    assert ledger_edits.find_current(known.values()) == {later.id: later}


def test_a_clear_that_arrived_is_kept() -> None:
    """A cleared key is no longer managed until it is set again; the value is remembered."""
    clear = row("user=a", None, INTENDED)
    later = row("user=a", 3.0, INTENDED, sequence=3)
    known = rows(row("user=a", 1.0), clear)

    ledger_edits.intend(known, [later], {})

    absent = clear._replace(state=VERIFIED)
    assert known == rows(absent, clear, later, clear._replace(state=CLEARED, value=1.0))
    assert ledger_edits.find_managed(tuple(known.values()), {}) == {}


def test_an_attempt_again_verifies_nothing() -> None:
    """The same intent again changes nothing, although the cluster already stores it."""
    known = rows(row("user=a", 2.0, INTENDED))

    ledger_edits.intend(known, [row("user=a", 2.0, INTENDED)], {Key("user=a", KEY): 2.0})

    assert known == rows(row("user=a", 2.0, INTENDED))


def test_an_intent_is_taken_back() -> None:
    """A write that certainly did not happen makes nothing managed; what was verified stays."""
    other = row("user=a", 2.0, INTENDED, run="run-2")
    kept = [row("user=a", 1.0), other, row("user=b", 2.0, INTENDED)]
    known = rows(*kept, row("user=a", 2.0, INTENDED), row("user=c", 3.0, ALTERED))

    ledger_edits.withdraw(known, "run-1", [Key("user=a", KEY), Key("user=c", KEY)])

    assert known == rows(*kept)


def test_what_was_read_back_is_verified_and_ends_no_intent() -> None:
    """A value or an absence replaces the verified row; whether an intent may arrive is not known.

    The value that a clear has cleared is remembered. One that another tool has cleared is not.
    """
    intents = rows(row("user=a", 2.0, INTENDED), row("user=b", None, INTENDED))
    known = rows(*(row(f"user={name}", 1.0) for name in "abc")) | intents
    found = [row("user=a", 2.0, sequence=2), row("user=b", None, sequence=2)]
    found += [row("user=c", None), row("user=d", 4.0)]

    ledger_edits.confirm(known, found)

    cleared = row("user=b", 1.0, CLEARED, sequence=2)
    assert known == rows(*found, cleared) | intents

    ledger_edits.drop_absences(known)
    kept = rows(*found[:2], found[3], cleared)
    assert known == kept | intents
    del kept[ledger_key(found[1])]
    ledger_edits.drop_absences(kept)
    assert kept == rows(found[0], found[3], cleared)


@pytest.mark.parametrize("value", [2.0, nan, None])
def test_an_intent_ends_when_it_cannot_arrive(value: float | None) -> None:
    """It ends when it was read back, each request got a response, and no later run replaced it.

    Intents of other runs stay, also those of the same value.
    """
    read_back = row("user=a", value, sequence=2)
    kept = [read_back, row("user=a", value, INTENDED, run="run-2")]
    known = rows(*kept, row("user=a", value, INTENDED))
    key, before = read_back.id, dict(known)

    ledger_edits.settle(known, "run-1", [key], {key: value})
    ledger_edits.settle(known, "run-1", [], {})
    assert known == before
    later = rows(row("user=a", 9.0, sequence=3), row("user=a", value, INTENDED))
    before = dict(later)
    ledger_edits.settle(later, "run-1", [], {key: value})
    assert later == before

    ledger_edits.settle(known, "run-1", [], {key: value})
    assert known == rows(*kept)


def test_an_intent_that_a_later_run_did_not_find_is_late() -> None:
    """The intent of a row that a later run only reports is not current any more.

    One that has arrived stays current, and so does one of the run itself or a later one.
    """
    intents = [row(f"user={name}", 2.0, INTENDED) for name in "abcd"]
    known = rows(row("user=a", 1.0), *intents)
    found = {intent.id: 5.0 for intent in intents[:2]} | {intents[2].id: 2.0}

    ledger_edits.outlive(known, found, 2)
    assert known == rows(row("user=a", 1.0), *intents)

    ledger_edits.outlive(known, found, 3)
    absent = row("user=b", None, sequence=3)
    assert known == rows(row("user=a", 1.0, sequence=3), absent, *intents)
    assert [*ledger_edits.find_current(known.values())] == [intent.id for intent in intents[2:]]


def test_the_last_of_equal_cleared_values_is_remembered() -> None:
    """Of the clears of a value the last is kept; other values and states of the key stay too."""
    kept = [row("user=a", nan, CLEARED), row("user=a", 1.0)]
    known = rows(*kept, row("user=a", 1.0, CLEARED))

    ledger_edits.remember_cleared(known, [row("user=a", 1.0, run="run-2")])

    assert known == rows(*kept, row("user=a", 1.0, CLEARED, run="run-2", sequence=1))


def test_adopting_a_row_ends_the_memory_of_clears() -> None:
    """An adopted row is verified at that value; a known value is not noted.

    An earlier intent may still arrive, and is then late: the adopted row counts as later.
    """
    intent = row("user=b", 5.0, INTENDED)
    known = rows(row("user=b", 1.0), row("user=a", 5.0, CLEARED), intent)
    adopted = [row(f"user={name}", 6.0, sequence=None) for name in "ab"]

    assert ledger_edits.adopt(known, adopted) == adopted

    assert known == rows(adopted[0], adopted[1]._replace(sequence=2), intent)
    assert ledger_edits.find_current(known.values()) == {}
    assert ledger_edits.adopt(known, adopted) == []


def test_a_person_ends_the_memory_of_rows() -> None:
    """Intents and cleared values of these rows are forgotten; managed rows and other rows stay."""
    kept = [row("user=a", 1.0), row("user=b", 1.0, CLEARED)]
    known = rows(*kept, row("user=a", 1.0, INTENDED), row("user=a", 2.0, CLEARED))

    ledger_edits.forget(known, [Key("user=a", KEY)])

    assert known == rows(*kept)


@pytest.mark.parametrize("value", [None, 2.0, nan])
def test_a_value_that_a_person_sets_is_no_late_write(value: float | None) -> None:
    """An earlier write of exactly that value counts as one of the alter, until a later run.

    A cleared value is forgotten, and every other row is kept.
    """
    late = row("user=a", value, INTENDED, sequence=1)
    own = row("user=a", value, ALTERED, run="run-4", sequence=4)
    kept = [row("user=a", 3.0, INTENDED), row("user=a", 9.0), row("user=b", value, CLEARED)]
    cleared = [row("user=a", value, CLEARED)] if value is not None else []
    known = rows(*kept, late, own, *cleared)

    ledger_edits.count_as_altered(known, {late.id: value}, "run-4", 4)
    assert known == rows(*kept, own, late._replace(state=ALTERED, sequence=4))

    current = rows(late._replace(entity="user=c"), own._replace(entity="user=c"))
    before = dict(current)
    ledger_edits.count_as_altered(current, {Key("user=c", KEY): value}, "run-4", 4)
    assert current == before


def test_an_alter_makes_no_row_managed() -> None:
    """Its value is not managed when it arrives, and a run that reports the row outlives it.

    The run does not outlive the alter of a row that no run manages, or one that has arrived.
    """
    alters = [row(f"user={name}", 5.0, ALTERED) for name in "abc"]
    known = rows(*alters, row("user=a", 1.0), row("user=b", 1.0))
    stored = {alter.id: 5.0 for alter in alters}
    assert [*ledger_edits.find_managed(tuple(known.values()), stored)] == [
        alters[0].id,
        alters[1].id,
    ]

    ledger_edits.outlive(known, {**stored, alters[0].id: 7.0, alters[2].id: 7.0}, 3)

    late = row("user=a", 1.0, sequence=3)
    assert known == rows(*alters, late, row("user=b", 1.0))
    assert [*ledger_edits.find_current(known.values())] == [alters[1].id, alters[2].id]


def test_memory_ends_when_a_value_is_old_and_not_back() -> None:
    """Intents end after a day and clears after thirty, unless the policy sets others.

    A value that a broker stores stays, unless it is the verified one.
    """
    now = datetime(2026, 11, 2, 12, tzinfo=UTC)
    old = {"at": "2026-01-01T00:00:00Z"}
    kept = [row("user=a", 1.0), row("user=a", 3.0, INTENDED, at="2026-11-01T12:00:00Z")]
    kept += [row("user=a", 3.0, CLEARED, at="2026-10-03T12:00:00Z")]
    kept += [row("user=a", 4.0, INTENDED, **old)]
    kept += [row("user=b", 1.0), row("user=b", None, INTENDED, **old)]
    ended = [row("user=a", 2.0, INTENDED, at="2026-11-01T11:59:59Z")]
    ended += [row("user=a", 2.0, CLEARED, at="2026-10-03T11:59:59Z")]
    ended += [row("user=a", 1.0, INTENDED, at="2026-11-01T11:59:59Z")]
    stored = [{kept[0].id: 4.0}, {kept[0].id: 1.0}]

    for memory, left in ((Memory(), []), (Memory(86_401, 2_592_001), ended)):
        known = rows(*kept, *ended)
        ledger_edits.forget_impossible(known, memory, now, stored)
        assert known == rows(*kept, *left)


def test_owner_and_file_follow_git() -> None:
    """A row that moves to another team's file is the same row.

    One that left Git keeps its owner.
    """
    known = rows(row("user=a", 1.0), row("user=b", 1.0), row("user=b", 2.0, INTENDED))

    ledger_edits.follow(known, {Key("user=b", KEY): ("search", "search.yaml")})

    after = {"owner": "search", "file": "search.yaml"}
    assert known == rows(
        row("user=a", 1.0), row("user=b", 1.0, **after), row("user=b", 2.0, INTENDED, **after)
    )


def test_a_run_cleared_a_row() -> None:
    """A row was cleared if it differs for that reason, or if the ledger remembers that."""
    cleared = ALICE_RAISED._replace(kind=Kind.CLEARED)
    returned = ALICE_RAISED._replace(memory=CLEARED)
    assert [was_cleared(difference) for difference in (cleared, returned, ALICE_RAISED)] == [
        True,
        True,
        False,
    ]
