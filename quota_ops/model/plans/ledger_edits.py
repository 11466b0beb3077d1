"""Edits of ledger rows: verified values, writes that may arrive, and values that runs cleared.

Each changes a dictionary of rows by `ledger_key`. What a run sends, an alter too, is remembered
from before its first request until its own run has read it back and every request got a response,
or else until the request is too old to arrive. Neither a response nor a message is evidence of what
a cluster stores.
"""

from collections.abc import Collection, Container, Iterable, Mapping
from datetime import datetime, timedelta

from quota_ops.model.moment import iso_utc
from quota_ops.model.plans.plan import exact
from quota_ops.model.plans.policy import Memory
from quota_ops.model.quotas.difference import Difference, Kind
from quota_ops.model.quotas.quota import same
from quota_ops.model.quotas.rows import Key, LedgerRow, Stored, Targets

VERIFIED = "verified"
"""The value that the last run of a key read back; null if it found none and intents are left."""
INTENDED = "intended"
"""A value that a run was about to send (null: a clear), and that may still arrive."""
ALTERED = "altered"
"""The same for an alter: if it arrives, the row is not managed by it."""
SENT = frozenset({INTENDED, ALTERED})
CLEARED = "cleared"
"""A value that a run cleared."""
STATES = SENT | {VERIFIED, CLEARED}

LedgerKey = tuple[str, ...]
"""Entity, key and state of a row; also the value if it was cleared, and the run if it was sent."""

Owners = Mapping[tuple[str, ...], tuple[str | None, str | None]]
"""The owner and the file of rows that Git declares, by entity and key."""


def ledger_key(row: LedgerRow) -> LedgerKey:
    """Return the identity of a row: one verified, one of each cleared value, one of each intent."""
    place = (row.entity, row.key, row.state)
    if row.state == VERIFIED:
        return place
    value = (*place, exact(row.value))
    return value if row.state == CLEARED else (*value, row.run)


def has_arrived(row: LedgerRow, stored: float | None) -> bool:
    """Return whether the cluster stores the value of a plan's intent; for a clear, no value."""
    return row.state == INTENDED and same(row.value, stored)


def find_current(
    known: Collection[LedgerRow], keys: Container[Key] | None = None
) -> dict[Key, LedgerRow]:
    """Return the intent of each key, or of `keys`, that no later run has replaced or verified.

    If it has arrived, the cluster has the value that quota-ops wrote last, or that a person altered
    since. Any other intent that arrives is a late write. In diff.sql: `is_current`. Of a run that
    clears a lost limit and sets it, the intent is to set it.
    """
    last: dict[Key, LedgerRow] = {}
    for row in known if keys is None or keys else ():
        if row.state in SENT and (keys is None or row.id in keys):
            last[row.id] = max(row, last.get(row.id, row), key=_rank)
    for row in known if last else ():
        has_intent = row.state == VERIFIED and (row.entity, row.key) in last  # few of many rows
        if has_intent and _number(row) >= _number(last[row.id]):
            del last[row.id]
    return last


def find_managed(known: Collection[LedgerRow], stored: Mapping[Key, float]) -> dict[Key, LedgerRow]:
    """Return the managed rows: verified rows, and current intents that have arrived."""
    managed = {row.id: row for row in known if row.state == VERIFIED}
    current = find_current(known)
    managed |= {key: row for key, row in current.items() if has_arrived(row, stored.get(key))}
    return {key: row for key, row in managed.items() if row.value is not None}


def intend(
    rows: dict[LedgerKey, LedgerRow], intents: Iterable[LedgerRow], stored: Mapping[Key, float]
) -> None:
    """Record writes that are about to be sent; every other row of their keys stays.

    A current intent that has arrived, according to `stored`, becomes verified as well: otherwise no
    later run could know that the value is managed.
    """
    intents = tuple(intents)
    current = find_current(rows.values(), {row.id for row in intents}) if rows else {}
    replaced = [(current[row.id], row) for row in intents if row.id in current] if current else []
    confirm(
        rows,
        [
            earlier._replace(state=VERIFIED)
            for earlier, row in replaced
            if has_arrived(earlier, stored.get(row.id)) and not same(earlier.value, row.value)
        ],
    )
    rows.update((ledger_key(row), row) for row in intents)


def withdraw(rows: dict[LedgerKey, LedgerRow], run: str, unwritten: Container[Key]) -> None:
    """Remove the intents of a run that certainly wrote nothing."""
    for key, row in list(rows.items()):
        if row.state in SENT and row.run == run and row.id in unwritten:
            del rows[key]


def confirm(rows: dict[LedgerKey, LedgerRow], verified: Iterable[LedgerRow]) -> None:
    """Record rows that were read back; a null value means that the cluster stores no value.

    When a clear is read back for the first time, the value that it cleared is remembered. A row
    that a later run has verified does not change.
    """
    verified = tuple(verified)
    cleared = {row.id for row in verified if row.value is None}
    current = find_current(rows.values(), cleared)
    for row in verified:
        place = ledger_key(row)
        known = rows.get(place)
        if known and _number(known) > _number(row):
            continue
        rows[place] = row
        intended = current.get(row.id) if current else None
        if intended and intended.value is None and known and known.value is not None:
            remember_cleared(rows, [intended._replace(value=known.value)])


def outlive(
    rows: dict[LedgerKey, LedgerRow], found: Mapping[Key, float | None], number: int
) -> None:
    """Record that the run with a number described these keys and will not read them back.

    A current intent of an earlier run that had not arrived by then is late if it still arrives;
    not that of an alter of a row that is not managed.
    """
    for key, row in find_current(rows.values(), found).items():
        if _number(row) < number and not same(row.value, found[key]):
            absent = row._replace(state=VERIFIED, value=None) if row.state == INTENDED else None
            if known := rows.get((*key, VERIFIED), absent):
                rows[*key, VERIFIED] = known._replace(sequence=number)


def settle(
    rows: dict[LedgerKey, LedgerRow], run: str, unanswered: Container[Key], verified: Targets
) -> None:
    """Remove the intents of a run that cannot arrive any more.

    Each request without a key in `unanswered` got a response, so none is in flight; brokers store
    the values `verified`, and no later run has verified another one, or has begun to write after an
    alter.
    """
    sent = [(key, row) for key, row in rows.items() if row.run == run and row.state in SENT]
    current = find_current(rows.values(), {row.id for _, row in sent if row.state == ALTERED})
    for key, row in sent:
        if (place := row.id) in verified and place not in unanswered:
            known = rows.get((*place, VERIFIED))
            is_verified = same(verified[place], known.value if known else None)
            is_last = _number(current.get(place)) == _number(row)
            if is_verified if row.state == INTENDED else is_last:
                del rows[key]


def remember_cleared(rows: dict[LedgerKey, LedgerRow], cleared: Iterable[LedgerRow]) -> None:
    """Record values that a run cleared; a row replaces an earlier one with the same value."""
    for row in cleared:
        kept = row._replace(state=CLEARED)
        rows[ledger_key(kept)] = kept


def forget(rows: dict[LedgerKey, LedgerRow], keys: Container[Key]) -> None:
    """Forget all values of these keys that are not verified, because a person decided on them."""
    for key, row in list(rows.items()):
        if row.state != VERIFIED and row.id in keys:
            del rows[key]


def count_as_altered(
    rows: dict[LedgerKey, LedgerRow], altered: Targets, run: str, number: int
) -> None:
    """Count late writes with exactly the values that an alter has set as writes of that alter.

    They are late again after a later run. A cleared value that an alter has set is forgotten.
    """
    others = [row for row in rows.values() if row.run != run]
    current = {ledger_key(row) for row in find_current(others).values()}
    for row in others:
        if row.state == VERIFIED or ledger_key(row) in current:
            continue
        if row.id in altered and same(row.value, altered[row.id]):
            del rows[ledger_key(row)]
            if row.state in SENT:
                kept = row._replace(state=ALTERED, sequence=number)
                rows[ledger_key(kept)] = kept


def forget_impossible(
    rows: dict[LedgerKey, LedgerRow], memory: Memory, now: datetime, stored: Collection[Stored]
) -> None:
    """Forget intents too old to arrive, and values that were cleared long ago.

    `stored` are the values on each broker. A value that a broker stores is forgotten only if it is
    the verified one: otherwise it has just come back, however old it is.
    """
    periods = {**dict.fromkeys(SENT, memory.late_writes), CLEARED: memory.cleared}
    first = {state: iso_utc(now - timedelta(seconds=period)) for state, period in periods.items()}
    for key, row in list(rows.items()):
        if row.state != VERIFIED and row.at < first[row.state]:
            known = rows.get((*row.id, VERIFIED))
            is_verified = same(row.value, known.value if known else None)
            if is_verified or not any(same(row.value, values.get(row.id)) for values in stored):
                del rows[key]


def drop_absences(rows: dict[LedgerKey, LedgerRow]) -> None:
    """Drop the verified rows without a value whose key has no intent left to compare with."""
    absent = [row for row in rows.values() if row.state == VERIFIED and row.value is None]
    if absent:
        sent = {row.id for row in rows.values() if row.state in SENT}
        for row in absent:
            if row.id not in sent:
                del rows[ledger_key(row)]


def _number(row: LedgerRow | None) -> int:
    """Return the number of the run that recorded a row: of two runs, the larger began later."""
    return row.sequence or 0 if row else 0


def _rank(row: LedgerRow) -> tuple[int, bool]:
    return _number(row), row.value is not None


def adopt(rows: dict[LedgerKey, LedgerRow], adopted: Iterable[LedgerRow]) -> list[LedgerRow]:
    """Record adopted rows, and return those that the ledger did not have with this value.

    The ledger forgets the cleared values of these rows, because a person decided about them. An
    intent of an earlier run may still arrive, so it stays, and the adopted row counts as later.
    """
    noted = []
    latest: dict[Key, int] = {}
    for row in rows.values():
        latest[row.id] = max(_number(row), latest.get(row.id, 0))
    for row in adopted:
        known = rows.get((row.entity, row.key, VERIFIED))
        if known is None or known.value != row.value:
            rows[row.entity, row.key, VERIFIED] = row._replace(sequence=latest.get(row.id) or None)
            noted.append(row)
    places = {row.id for row in adopted}
    for key, row in list(rows.items()):
        if row.state == CLEARED and row.id in places:
            del rows[key]
    return noted


def follow(rows: dict[LedgerKey, LedgerRow], owners: Owners) -> None:
    """Update the owner and file of each row from Git; a move between files changes no value."""
    for place, row in rows.items():
        owned = owners.get(place[:2])
        if owned is not None and owned != (row.owner, row.file):
            rows[place] = row._replace(owner=owned[0], file=owned[1])


def was_cleared(difference: Difference) -> bool:
    """Return whether a run cleared a row, so that the commit of that run does not declare it."""
    return difference.memory == CLEARED or difference.kind is Kind.CLEARED
