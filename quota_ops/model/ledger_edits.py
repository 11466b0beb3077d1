"""Edits of ledger rows: intended, withdrawn, verified and adopted writes.

Each changes a dictionary of rows by `ledger_key`.
"""

from collections.abc import Collection, Iterable, Mapping

from quota_ops.model.memory import CLEARED, SUPERSEDED, LedgerKey, forget, remember
from quota_ops.model.quota import same
from quota_ops.model.rows import DesiredRow, Key, LedgerRow

INTENDED = "intended"
VERIFIED = "verified"


def has_arrived(row: LedgerRow, stored: float | None) -> bool:
    """Return whether a row is an intent that the cluster stores, and so counts as verified.

    The intent of a clear has arrived if the cluster stores no value. In diff.sql: `arrived`.
    """
    return row.state == INTENDED and same(row.value, stored)


def find_managed(known: Collection[LedgerRow], stored: Mapping[Key, float]) -> dict[Key, LedgerRow]:
    """Return the managed rows: verified rows, and intents that have arrived."""
    managed = {row.id: row for row in known if row.state == VERIFIED}
    for row in known:
        if has_arrived(row, stored.get(row.id)):
            managed[row.id] = row
    return {key: row for key, row in managed.items() if row.value is not None}


def intend(
    rows: dict[LedgerKey, LedgerRow],
    intents: Iterable[LedgerRow],
    stored: Mapping[Key, float],
) -> None:
    """Record writes that are about to be sent; verified rows stay until the writes are verified.

    An earlier intent that has arrived, according to `stored`, becomes verified before a new one
    replaces it: otherwise no later run could know that the value is managed. Any other earlier
    intent may still arrive, and is remembered as superseded.
    """
    for row in intents:
        earlier = rows.get((row.entity, row.key, INTENDED))
        if earlier and not has_arrived(earlier, stored.get(row.id)):
            remember(rows, [earlier], SUPERSEDED)
        elif earlier and earlier.value != row.value:
            confirm(rows, [earlier._replace(state=VERIFIED)])
        rows[row.entity, row.key, INTENDED] = row


def withdraw(rows: dict[LedgerKey, LedgerRow], keys: Iterable[Key]) -> None:
    """Remove the intents of writes, by (entity, key), that certainly did not happen."""
    for entity, key in keys:
        rows.pop((entity, key, INTENDED), None)


def confirm(rows: dict[LedgerKey, LedgerRow], verified: Iterable[LedgerRow]) -> None:
    """Record rows that were read back; a null value means that the cluster stores no value.

    An intent for another value may still arrive, and is remembered as superseded. When a clear is
    read back for the first time, the value that it cleared is remembered. A row that a later run
    has recorded does not change.
    """
    for row in verified:
        place = row.id
        intended, known = rows.get((*place, INTENDED)), rows.get((*place, VERIFIED))
        if _is_later(intended, row) or _is_later(known, row):
            continue
        rows.pop((*place, INTENDED), None)
        if intended and not has_arrived(intended, row.value):
            remember(rows, [intended], SUPERSEDED)
        if row.value is not None:
            rows[*place, VERIFIED] = row
        elif known:
            del rows[*place, VERIFIED]
            if intended and intended.value is None:
                remember(rows, [intended._replace(value=known.value)], CLEARED)


def _is_later(noted: LedgerRow | None, row: LedgerRow) -> bool:
    """Return whether the run that recorded `noted` began later than the run of `row`."""
    return noted is not None and (noted.sequence or 0) > (row.sequence or 0)


def adopt(rows: dict[LedgerKey, LedgerRow], adopted: Iterable[LedgerRow]) -> list[LedgerRow]:
    """Record adopted rows, and return those that the ledger did not have with this value.

    The ledger forgets their remembered values, because a person decided about these rows.
    """
    noted = []
    adopted = tuple(adopted)
    forget(rows, (row.id for row in adopted))
    for row in adopted:
        known = rows.get((row.entity, row.key, VERIFIED))
        if known is None or known.value != row.value:
            rows[row.entity, row.key, VERIFIED] = row
            noted.append(row)
    return noted


def follow(rows: dict[LedgerKey, LedgerRow], desired: Mapping[Key, DesiredRow]) -> None:
    """Update the owner and file of each row from Git; a move between files changes no value."""
    for place, row in rows.items():
        declared = desired.get(row.id)
        if declared is not None and (row.owner != declared.owner or row.file != declared.file):
            rows[place] = row._replace(owner=declared.owner, file=declared.file)
