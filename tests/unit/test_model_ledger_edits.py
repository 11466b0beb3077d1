"""Edits of a ledger's rows: what is about to be sent, what was read back, what is kept."""

from typing import Any

import pytest

from quota_ops.model import ledger_edits
from quota_ops.model.ledger_edits import INTENDED, VERIFIED
from quota_ops.model.memory import CLEARED, SUPERSEDED, LedgerKey, ledger_key
from quota_ops.model.rows import DesiredRow, Key, LedgerRow

KEY = "producer_byte_rate"


def row(entity: str, value: float | None, state: str = VERIFIED, **fields: Any) -> LedgerRow:
    """Return a row of the ledger."""
    when: dict[str, Any] = {"run": "run-1", "at": "2026-11-01T00:00:00Z"}
    made = LedgerRow("id", entity, KEY, value, state, "team", "team.yaml", "c0ffee", **when)
    return made._replace(**fields)


def rows(*given: LedgerRow) -> dict[LedgerKey, LedgerRow]:
    """Return rows as an edit receives them."""
    return {ledger_key(one): one for one in given}


@pytest.mark.parametrize("state", [INTENDED, VERIFIED])
def test_a_later_run_wins(state: str) -> None:
    """A value read back by an earlier run replaces nothing that a later run recorded."""
    later, earlier = row("user=a", 2.0, state, sequence=2), row("user=a", 1.0, sequence=1)
    known = rows(later)

    ledger_edits.confirm(known, [earlier, earlier._replace(sequence=None)])
    assert known == rows(later)

    ledger_edits.confirm(known, [earlier._replace(sequence=3)])
    assert known[ledger_key(earlier)].sequence == 3


def test_an_intent_stands_beside_what_was_verified() -> None:
    """An intent is kept next to the verified value until it is read back."""
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
    ]
    stored = {Key(f"user={name}", KEY): 2.0 for name in ("arrived", "replaced")}

    managed = ledger_edits.find_managed(known, stored)

    assert list(managed.values()) == [known[0], known[3], known[1]]


@pytest.mark.parametrize(
    ("stored", "verified"),
    [
        ({Key("user=a", KEY): 2.0}, [row("user=a", 2.0, run="run-2")]),
        (
            {Key("user=a", KEY): 1.0},
            [row("user=a", 1.0), row("user=a", 2.0, SUPERSEDED, run="run-2")],
        ),
        ({}, [row("user=a", 1.0), row("user=a", 2.0, SUPERSEDED, run="run-2")]),
    ],
)
def test_an_earlier_intent_is_kept(stored: dict[Key, float], verified: list[LedgerRow]) -> None:
    """Before another intent replaces it, an intent that arrived counts as read back.

    Any other may still arrive, and is remembered.
    """
    known = rows(row("user=a", 1.0), row("user=a", 2.0, INTENDED, run="run-2"))

    ledger_edits.intend(known, [row("user=a", 3.0, INTENDED)], stored)

    assert known == rows(*verified, row("user=a", 3.0, INTENDED))


def test_a_clear_that_arrived_is_kept() -> None:
    """A cleared key is no longer managed until it is set again."""
    known = rows(row("user=a", 1.0), row("user=a", None, INTENDED))

    ledger_edits.intend(known, [row("user=a", 3.0, INTENDED)], {})

    assert known == rows(row("user=a", 3.0, INTENDED), row("user=a", 1.0, CLEARED))


def test_an_attempt_again_verifies_nothing() -> None:
    """The same intent again changes nothing, although the cluster already stores it."""
    known = rows(row("user=a", 2.0, INTENDED))

    ledger_edits.intend(known, [row("user=a", 2.0, INTENDED)], {Key("user=a", KEY): 2.0})

    assert known == rows(row("user=a", 2.0, INTENDED))


def test_an_intent_is_taken_back() -> None:
    """A write that certainly did not happen makes nothing managed; what was verified stays."""
    known = rows(row("user=a", 1.0), row("user=a", 2.0, INTENDED), row("user=b", 2.0, INTENDED))

    ledger_edits.withdraw(known, [Key("user=a", KEY), Key("user=c", KEY)])

    assert known == rows(row("user=a", 1.0), row("user=b", 2.0, INTENDED))


def test_what_was_read_back_ends_the_intent() -> None:
    """A value replaces both rows of its key; an absence removes them."""
    known = rows(
        row("user=a", 1.0),
        row("user=a", 2.0, INTENDED),
        row("user=b", 1.0),
        row("user=b", None, INTENDED),
        row("user=c", 1.0),
    )

    ledger_edits.confirm(known, [row("user=a", 2.0), row("user=b", None), row("user=d", 4.0)])

    assert known == rows(
        row("user=a", 2.0),
        row("user=b", 1.0, CLEARED),
        row("user=c", 1.0),
        row("user=d", 4.0),
    )


def test_an_intent_for_another_value_than_was_read_back_is_remembered() -> None:
    """A write that another run intended may still arrive, so it is remembered."""
    known = rows(row("user=a", 1.0), row("user=a", 2.0, INTENDED, run="run-2"))
    known |= rows(row("user=b", 2.0, INTENDED, run="run-2"))

    ledger_edits.confirm(known, [row("user=a", 1.0), row("user=b", None)])

    late = [row(entity, 2.0, SUPERSEDED, run="run-2") for entity in ("user=a", "user=b")]
    assert known == rows(row("user=a", 1.0), *late)


def test_a_row_that_is_only_forgotten_leaves_no_memory() -> None:
    """A value that another tool removed is not remembered as cleared by a run."""
    known = rows(row("user=a", 1.0))

    ledger_edits.confirm(known, [row("user=a", None)])

    assert known == {}


def test_adopting_a_row_ends_its_memory() -> None:
    """An adopted row is verified at that value and has no memory; a known value is not noted."""
    others = [row("user=c", 5.0, CLEARED)]
    memories = [row("user=a", 5.0, CLEARED), row("user=b", 5.0, SUPERSEDED)]
    known = rows(row("user=b", 1.0), *memories, *others)

    noted = ledger_edits.adopt(known, [row("user=a", 5.0), row("user=b", 1.0)])

    assert noted == [row("user=a", 5.0)]
    assert known == rows(row("user=a", 5.0), row("user=b", 1.0), *others)


def test_owner_and_file_follow_git() -> None:
    """A row that moves to another team's file is the same row.

    One that left Git keeps its owner.
    """
    known = rows(row("user=a", 1.0), row("user=b", 1.0), row("user=b", 2.0, INTENDED))
    moved = DesiredRow("id", "user=b", KEY, 1.0, "search", None, "search.yaml", 3)

    ledger_edits.follow(known, {Key("user=b", KEY): moved})

    after = {"owner": "search", "file": "search.yaml"}
    assert known == rows(
        row("user=a", 1.0),
        row("user=b", 1.0, **after),
        row("user=b", 2.0, INTENDED, **after),
    )
