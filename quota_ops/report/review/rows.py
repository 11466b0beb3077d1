"""The rows of a review: what the branch changes, and other differences."""

from functools import lru_cache
from typing import NamedTuple

from quota_ops.model.plans.scope import NEWLY_PROTECTED
from quota_ops.model.quotas.difference import WRITES, Action, Kind
from quota_ops.model.quotas.entity import Entity
from quota_ops.model.quotas.rows import Key
from quota_ops.model.runs.review import ClusterReview
from quota_ops.report.outline.row_status import ReportRow, RowStatus, report_rows

_DONE = frozenset({Action.RECORD, Action.FORGET})
"""Actions on rows that the cluster has as the branch declares them."""


class ReviewRows(NamedTuple):
    """The rows of one cluster, the riskiest first.

    `written` would be written by this branch; `unwritten` are declared differently by this branch,
    and their value on the cluster stays; `overriding` are unmanaged, and keep clients from what
    this branch declares; `accepted` are overriding until this branch protects them; `others` differ
    for another reason; `merged` have the value that the target branch declares since the merge
    base; `stored` are declared differently, and the cluster already has the value; `absent` are
    removed, and the cluster does not have them.
    """

    written: tuple[ReportRow, ...]
    unwritten: tuple[ReportRow, ...]
    overriding: tuple[ReportRow, ...]
    accepted: tuple[ReportRow, ...]
    others: tuple[ReportRow, ...]
    merged: tuple[ReportRow, ...]
    stored: tuple[Key, ...]
    absent: tuple[Key, ...]


@lru_cache(maxsize=256)  # a comment needs the rows of each cluster several times
def split_rows(review: ClusterReview) -> ReviewRows:
    """Return the rows of a cluster's review."""
    rows = report_rows(review.report) if review.report else ()
    own = [row for row in rows if row.difference.id in review.own]
    done = {row.difference.id for row in own if row.difference.action in _DONE}
    done |= review.own - {row.difference.id for row in own}  # in sync, and so not listed
    others = [row for row in rows if row.difference.id not in review.own and _differs(row)]
    accepted = tuple(row for row in others if _is_accepted(review, row))
    others = [row for row in others if row not in accepted]
    return ReviewRows(
        tuple(row for row in own if row.difference.action in WRITES),
        tuple(
            row
            for row in own
            if row.difference.action not in WRITES and row.difference.id not in done
        ),
        tuple(row for row in others if _is_overriding(review, row)),
        accepted,
        tuple(
            row for row in others if not (_is_merged(review, row) or _is_overriding(review, row))
        ),
        tuple(row for row in others if _is_merged(review, row)),
        tuple(sorted(done & review.declared)),
        tuple(sorted(done - review.declared)),
    )


def _differs(row: ReportRow) -> bool:
    """Return whether a row is worth a line: neither in sync nor unmanaged."""
    return row.difference.kind not in {Kind.IN_SYNC, Kind.UNMANAGED, Kind.CLEARED} and (
        row.status is not RowStatus.FORGOTTEN
    )


def _is_merged(review: ClusterReview, row: ReportRow) -> bool:
    """Return whether the cluster has what the target branch declares since the merge base."""
    if review.base is None or review.target is None:
        return False
    base, target = (
        None if (found := files.rows.get(row.difference.id)) is None else found.value
        for files in (review.base, review.target)
    )
    return target != base and row.difference.before == target


def _is_overriding(review: ClusterReview, row: ReportRow) -> bool:
    return row.status is RowStatus.OVERRIDING and any(
        taken.declared_id in review.declared for taken in row.overrides
    )


def _is_accepted(review: ClusterReview, row: ReportRow) -> bool:
    """Return whether a quota is overriding until a run has applied what this branch protects."""
    if row.difference.hands_off != NEWLY_PROTECTED or not row.overrides:
        return False
    entity = Entity.parse(row.difference.entity)
    before = review.base.policy if review.base else None
    return before is None or not any(covers.accepts(entity) for covers in before.protect)


def find_place(review: ClusterReview, row: ReportRow) -> tuple[str, int | None, bool] | None:
    """Return the path and line that declare a row, and whether only the merge base has them.

    The path is below the root of the repository. None if neither side declares the row.
    """
    difference = row.difference
    if difference.after is not None and difference.file:
        return f"{review.folder}/{difference.file}", difference.line, False
    known = review.base.rows.get(difference.id) if review.base else None
    if known is None or review.base is None:
        return None
    parent = review.folder.rpartition("/")[0]
    folder = f"{parent}/{review.base.folder}" if parent else review.base.folder
    return f"{folder}/{known.file}", known.line, True
