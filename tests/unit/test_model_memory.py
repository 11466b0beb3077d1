"""What a ledger remembers of writes and rows that ended, and for how long."""

from datetime import UTC, datetime
from math import nan
from typing import Any

import pytest

from quota_ops.model.difference import Kind
from quota_ops.model.memory import (
    CLEARED,
    SUPERSEDED,
    LedgerKey,
    drop_expired,
    forget,
    forget_acknowledged,
    forget_values,
    ledger_key,
    remember,
    remembered_from,
    was_cleared,
)
from quota_ops.model.policy import Memory, Policy
from quota_ops.model.rows import Key, LedgerRow
from tests.unit.report_sample import ALICE_RAISED

KEY = "producer_byte_rate"
NOW = datetime(2026, 11, 2, 12, tzinfo=UTC)


def row(entity: str, value: float | None, state: str = SUPERSEDED, **fields: Any) -> LedgerRow:
    """Return a row of the ledger."""
    made = LedgerRow("id", entity, KEY, value, state, None, None, None, "run-1", "")
    return made._replace(**fields)


def rows(*given: LedgerRow) -> dict[LedgerKey, LedgerRow]:
    """Return rows as an edit receives them."""
    return {ledger_key(one): one for one in given}


def test_equal_values_of_a_key_are_remembered_once() -> None:
    """Of rows with equal value and state the last is kept; other values and states stay too."""
    values = (None, nan, 1.0, 2.0)
    known = rows(*(row("user=a", value) for value in values))

    remember(known, [row("user=a", value, "intended", run="run-2") for value in values], SUPERSEDED)
    remember(known, [row("user=a", 1.0, "verified")], CLEARED)

    assert known == rows(
        *(row("user=a", value, run="run-2") for value in values), row("user=a", 1.0, CLEARED)
    )


def test_a_person_ends_the_memory_of_rows() -> None:
    """All memories of these rows are forgotten; managed rows and other rows stay."""
    ours, other = row("user=a", 1.0, "verified"), row("user=b", 1.0)
    known = rows(ours, other, row("user=a", 1.0), row("user=a", 2.0, CLEARED))

    forget(known, [Key("user=a", KEY)])

    assert known == rows(ours, other)


def test_an_answered_write_is_not_remembered() -> None:
    """A write that got a response is forgotten; those of other runs and other rows are kept."""
    kept = [row("user=a", 1.0, run="run-2"), row("user=b", 1.0), row("user=a", 1.0, CLEARED)]
    known = rows(*kept, row("user=a", 2.0), row("user=a", None))

    forget_acknowledged(known, "run-1", {Key("user=a", KEY)})

    assert known == rows(*kept)


@pytest.mark.parametrize("value", [None, 2.0, nan])
def test_a_value_that_a_person_sets_is_no_longer_remembered(value: float | None) -> None:
    """A value that a person sets is forgotten in both states; other values of the key are kept."""
    kept = [row("user=a", 3.0), row("user=a", 2.0, "verified"), row("user=b", value)]
    cleared = [row("user=a", value, CLEARED)] if value is not None else []
    known = rows(*kept, row("user=a", value), *cleared)

    forget_values(known, {Key("user=a", KEY): value})

    assert known == rows(*kept)


def test_memory_lasts_as_long_as_the_policy_says() -> None:
    """A day and thirty days, unless cluster.yaml sets others; all other rows stay."""
    assert remembered_from(Memory(), NOW) == {
        SUPERSEDED: "2026-11-01T12:00:00Z",
        CLEARED: "2026-10-03T12:00:00Z",
    }
    ours = row("user=a", 1.0, "verified")
    lasts = [row("user=a", 1.0, at="2026-11-01T12:00:00Z")]
    lasts += [row("user=a", 1.0, CLEARED, at="2026-10-03T12:00:00Z")]
    ended = [row("user=a", 2.0, at="2026-11-01T11:59:59Z")]
    ended += [row("user=a", 2.0, CLEARED, at="2026-10-03T11:59:59Z")]
    longer = Policy("demo", "id", "demo", memory=Memory(86_401, 2_592_001)).as_json()
    older: dict[str, Any] = {"cluster_id": "id"}

    for policy in (None, older, longer):
        known = rows(ours, *lasts, *ended)
        drop_expired(known, policy, NOW)
        assert known == rows(ours, *lasts, *(ended if policy is longer else ()))
    known = rows(ours)
    drop_expired(known, None, NOW)
    assert known == rows(ours)


def test_a_run_cleared_a_row() -> None:
    """A row was cleared if it differs for that reason, or if the ledger remembers that."""
    cleared = ALICE_RAISED._replace(kind=Kind.CLEARED)
    returned = ALICE_RAISED._replace(memory=CLEARED)
    assert [was_cleared(one) for one in (cleared, returned, ALICE_RAISED)] == [True, True, False]
