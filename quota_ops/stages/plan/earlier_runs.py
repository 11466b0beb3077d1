"""Reads the earlier runs that the ledger records, for the guards."""

from collections import Counter
from collections.abc import Iterable

import pyarrow as pa

from quota_ops.model.plans.guard_rules import EarlierRuns
from quota_ops.model.plans.ledger_edits import VERIFIED, find_managed
from quota_ops.model.quotas.owners import OwnerChange, list_owner_changes
from quota_ops.model.quotas.tables import ACTUAL, DESIRED, LEDGER
from quota_ops.stages.succession import find_overtaking_commit, read_applied_policy
from quota_ops.store.ledger.ledger import read_notes
from quota_ops.store.places.parquet import read_rows, to_rows, to_values
from quota_ops.store.run.files import CHANGES, DESCRIBED, ROLLBACK
from quota_ops.store.run.folder import RunFolder

_OWNED = ("entity", "key", "owner")


def read_earlier_runs(folder: RunFolder) -> EarlierRuns:
    """Return what the ledger recorded when describe ran.

    That is the number of managed rows of each owner, the last applied policy and the commits, with
    how Git differs from them: the commit that this one lacks, and quotas with another owner.
    """
    table, changes = folder.read_table(LEDGER), folder.find(CHANGES)
    owners, notes = count_managed_rows(folder), read_notes(table)
    own, newest = folder.about().commit, notes.commits[-1] if notes.commits else None
    # One that was applied between `check --run` and `describe --run` is not in what check compared.
    is_late = changes is not None and newest not in {None, own, changes.since}
    return EarlierRuns(
        owned=owners.total(),
        owners=owners,
        policy=read_applied_policy(folder, table),
        commits=notes.commits,
        overtaken_by=newest if is_late else find_overtaking_commit(folder, notes.commits),
        lacks=changes.lacks if changes else None,
        checked_out=changes.checked_out if changes else None,
        old_ledger=folder.read(DESCRIBED).old_ledger,
        owner_changes=read_owner_changes(folder),
    )


def read_owner_changes(folder: RunFolder) -> tuple[OwnerChange, ...]:
    """Return the managed quotas that get a different owner than in the ledger."""
    return folder.read_cached("owner changes", lambda: _find_owner_changes(folder))


def _find_owner_changes(folder: RunFolder) -> tuple[OwnerChange, ...]:
    if folder.has(ROLLBACK) or not folder.has(DESIRED.file):
        return ()
    ledger, desired = folder.read_table(LEDGER), folder.read_table(DESIRED)
    known = to_rows(ledger, *_OWNED, "state", "value")
    managed = (row for *row, state, value in known if state == VERIFIED and value is not None)
    return list_owner_changes(managed, to_rows(desired, *_OWNED, "file", "line"))


def count_managed_rows(folder: RunFolder) -> Counter[str | None]:
    """Return the number of managed rows of each owner, from the ledger at the time of describe."""
    return Counter(_list_owners(folder, folder.read_table(LEDGER)))


def _list_owners(folder: RunFolder, table: pa.Table) -> Iterable[str | None]:
    """List the owner of each managed row."""
    states = {*to_values(table["state"])}
    if states <= {VERIFIED}:
        return to_values(table["owner"])
    managed = find_managed(tuple(read_rows(LEDGER, table)), folder.read_values(ACTUAL))
    return [row.owner for row in managed.values()]
