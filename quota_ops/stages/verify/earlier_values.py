"""Values of earlier runs that are on the cluster again, as verify names them."""

from collections.abc import Iterable, Sequence

from quota_ops.model.difference import Action, Difference, Kind
from quota_ops.model.errors import Refused
from quota_ops.model.memory import CLEARED
from quota_ops.model.text import plural

FEW = 5
"""Rows that a message names."""


def describe_late_writes(differences: Iterable[Difference]) -> str:
    """Name the rows that an earlier run seems to have written late; empty when there is none."""
    late = [row for row in differences if row.kind is Kind.LATE_WRITE]
    return f" Late writes of earlier runs: {_named(late)}." if late else ""


def refuse_returned(differences: Iterable[Difference]) -> None:
    """Raise Refused when rows are there again that a run would clear, once a person agrees."""
    returned = [
        row for row in differences if (row.kind, row.action) == (Kind.RETURNED, Action.CLEAR)
    ]
    if returned:
        are = plural(len(returned), "quota that is", "quotas that are")
        raise Refused(
            f"{len(returned):,} {are} not in Git came back: {_named(returned)}",
            "To clear: quota-ops reconcile --allow returned --reason TEXT. "
            "To keep: declare it in Git, or quota-ops release --from-ledger.",
        )


def _named(rows: Sequence[Difference]) -> str:
    more = f" and {len(rows) - FEW:,} more" if len(rows) > FEW else ""
    return "; ".join(map(_row, rows[:FEW])) + more


def _row(row: Difference) -> str:
    did = "cleared" if row.memory == CLEARED else "written"
    return f"{row.entity} {row.key}, {did} by run {row.run}"
