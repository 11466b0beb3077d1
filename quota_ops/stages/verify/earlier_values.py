"""Detects values of earlier runs that have returned to the cluster."""

from collections.abc import Iterable, Sequence

from quota_ops.model.errors import Refused
from quota_ops.model.plans.ledger_edits import CLEARED
from quota_ops.model.quotas.difference import Action, Difference, Kind
from quota_ops.model.text import plural

FEW = 5
"""The most rows that a message lists."""


def describe_late_writes(differences: Iterable[Difference]) -> str:
    """Describe rows that an earlier run seems to have written late; empty if there are none."""
    late = [row for row in differences if row.kind is Kind.LATE_WRITE]
    return f" Late writes of earlier runs: {_list_rows(late)}." if late else ""


def refuse_returned(differences: Iterable[Difference]) -> None:
    """Raise Refused when cleared rows have returned; a run clears them only after an override."""
    returned = [
        row for row in differences if (row.kind, row.action) == (Kind.RETURNED, Action.CLEAR)
    ]
    if returned:
        are = plural(len(returned), "quota that is", "quotas that are")
        raise Refused(
            f"{len(returned):,} {are} not in Git came back: {_list_rows(returned)}",
            "To clear: quota-ops reconcile --allow returned --reason TEXT. "
            "To keep: declare it in Git, or quota-ops release --from-ledger.",
        )


def _list_rows(rows: Sequence[Difference]) -> str:
    more = f" and {len(rows) - FEW:,} more" if len(rows) > FEW else ""
    return "; ".join(map(_describe_row, rows[:FEW])) + more


def _describe_row(row: Difference) -> str:
    did = "cleared" if row.memory == CLEARED else "written"
    return f"{row.entity} {row.key}, {did} by run {row.run}"
