"""The values that an earlier run leaves on the cluster when a later run takes precedence."""

from collections.abc import Iterable, Mapping

from quota_ops.model.plans.ledger_edits import CLEARED
from quota_ops.model.quotas.difference import WRITES
from quota_ops.model.quotas.quota import same
from quota_ops.model.quotas.rows import Key, LedgerRow, Stored
from quota_ops.model.runs.outcome import find_open, find_written
from quota_ops.model.text import command, name_first
from quota_ops.stages.verify.ledger_update import AppliedRun

FEW = 5
"""The most rows that the remedy lists."""


def format_remedy(
    run: AppliedRun,
    stored: Mapping[int, Stored],
    known: Iterable[LedgerRow],
    wanted: Mapping[Key, float],
) -> str:
    """Return what a person does after a run that a later run has overtaken.

    `stored` are the values on each broker, `known` the rows of the ledger, `wanted` those that the
    later run declares. The later run takes precedence only if no broker stores another value of
    this run, and none can still arrive.
    """
    cluster = run.about.cluster
    if own := _find_own_values(run, stored, known, wanted):
        rows = name_first(map(" ".join, own), FEW)
        return (
            f"The cluster stores values of this run, not of the later one: {rows}. "
            f"To correct them: {command('reconcile', cluster)}"
        )
    if find_open(run.outcomes):
        return (
            "Writes of this run got no response, and may still arrive. "
            f"To see whether they did: {command('plan', cluster)}"
        )
    return "The later run takes precedence. How it ended: quota-ops runs"


def _find_own_values(
    run: AppliedRun,
    stored: Mapping[int, Stored],
    known: Iterable[LedgerRow],
    wanted: Mapping[Key, float],
) -> list[Key]:
    """Return the managed rows for which a broker stores the value of this run, not a later one."""
    number = run.about.sequence or 0
    written = find_written(run.outcomes) | find_open(run.outcomes)
    noted = [(row.sequence or 0, row) for row in known if row.state != CLEARED]
    written &= {row.id for _, row in noted}  # a row that was released is left alone
    later = dict[Key, float | None](wanted) | {
        row.id: row.value for of, row in sorted(noted, key=lambda pair: pair[0]) if of > number
    }
    return [
        row.id
        for row in run.differences
        if row.action in WRITES and row.id in written
        if any(same(values.get(row.id), row.target) for values in stored.values())
        if row.id not in later or not same(later[row.id], row.target)
    ]
