"""Ledger memory: writes that may still arrive, and quotas that a run cleared.

Both are ledger rows in addition to the managed rows. They never decide alone: a value that
returns is compared with them.
"""

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

from quota_ops.model.difference import Difference, Kind
from quota_ops.model.moment import iso_utc
from quota_ops.model.plan import exact
from quota_ops.model.policy import YOUNGER, Memory
from quota_ops.model.quota import same
from quota_ops.model.rows import Key, LedgerRow

SUPERSEDED = "superseded"
"""A write that may still arrive although another write or a verification replaced it."""
CLEARED = "cleared"
"""A value that a run cleared."""
REMEMBERED = frozenset({SUPERSEDED, CLEARED})

LedgerKey = tuple[str, ...]
"""Entity, key and state of a row; for a remembered row also its value, formatted by `exact`."""


def ledger_key(row: LedgerRow) -> LedgerKey:
    """Return the identity of a row: a key has one row per state, and per remembered value."""
    place = (row.entity, row.key, row.state)
    return (*place, exact(row.value)) if row.state in REMEMBERED else place


def remember(rows: dict[LedgerKey, LedgerRow], remembered: Iterable[LedgerRow], state: str) -> None:
    """Record rows as superseded or cleared; a row replaces an earlier one with the same value."""
    for row in remembered:
        kept = row._replace(state=state)
        rows[ledger_key(kept)] = kept


def forget(rows: dict[LedgerKey, LedgerRow], places: Iterable[Key]) -> None:
    """Forget the remembered rows of each (entity, key), because a person decided about them."""
    ended = set(places)
    for one in [one for one, row in rows.items() if row.state in REMEMBERED and one[:2] in ended]:
        del rows[one]


def forget_acknowledged(
    rows: dict[LedgerKey, LedgerRow], run: str, acknowledged: Collection[Key]
) -> None:
    """Forget those writes of a run that a broker responded to: they can no longer arrive."""
    for one, row in list(rows.items()):
        if (row.state, row.run) == (SUPERSEDED, run) and one[:2] in acknowledged:
            del rows[one]


def forget_values(rows: dict[LedgerKey, LedgerRow], values: Mapping[Key, float | None]) -> None:
    """Forget the remembered rows with exactly the values that a person has just set."""
    for one, row in list(rows.items()):
        place = row.id
        if row.state in REMEMBERED and place in values and same(row.value, values[place]):
            del rows[one]


def remembered_from(memory: Memory, now: datetime) -> dict[str, str]:
    """Return for each state the time since which rows are remembered, in UTC as in ledgers."""
    periods = {SUPERSEDED: memory.late_writes, CLEARED: memory.cleared}
    return {state: iso_utc(now - timedelta(seconds=one)) for state, one in periods.items()}


def drop_expired(
    rows: dict[LedgerKey, LedgerRow], policy: Mapping[str, Any] | None, now: datetime
) -> None:
    """Drop the remembered rows whose period in the JSON values of a policy is over."""
    remembered = [one for one, row in rows.items() if row.state in REMEMBERED]
    if remembered:
        first = remembered_from(Memory(**(YOUNGER | dict(policy or {}))["memory"]), now)
        for one in remembered:
            if rows[one].at < first[rows[one].state]:
                del rows[one]


def was_cleared(difference: Difference) -> bool:
    """Return whether a run cleared a row, so that the commit of that run does not declare it."""
    return difference.memory == CLEARED or difference.kind is Kind.CLEARED
