"""Where each row of a report stands when the run is over."""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple

from quota_ops.model.difference import (
    DRIFT_KINDS,
    EARLIER_KINDS,
    WRITES,
    Action,
    Difference,
    Kind,
)
from quota_ops.model.guard import Guard
from quota_ops.model.guards import concerns
from quota_ops.model.outcome import DONE, Outcome, Status
from quota_ops.model.plan import Plan
from quota_ops.model.report import Origin, Report, StageStatus
from quota_ops.model.rows import DesiredRow, Key
from quota_ops.model.stricter import left_alone_before
from quota_ops.model.verification import RowVerdict, Verdict


class Standing(StrEnum):
    """What is true of a row at the end of a run, in the order of the bar."""

    IN_SYNC = "in sync"
    """The cluster matches Git, and did before this run."""
    CHANGED = "changed by this run"
    """The broker accepted it; verify, if it ran, found no broker with another value."""
    FOUND = "already as planned"
    """The cluster had it before this run sent anything, so nothing was written."""
    UNREAD = "not read back"
    """This run did not change it, and no broker responded afterwards; only counted, never a row."""
    PENDING = "pending"
    """Waits to be set or cleared."""
    DRIFTED = "drifted"
    """Changed on the cluster outside Git, and still so."""
    RETURNED = "returned"
    """Has the value of an earlier run again, and still does: a late write, or a cleared quota."""
    HELD = "held"
    """Left alone as it is, because a person holds it."""
    UNSETTLED = "unsettled"
    """Refused, stale, unknown, or not read back from every broker."""
    UNMANAGED = "unmanaged"
    """On the cluster, and unmanaged."""
    FORGOTTEN = "forgotten"
    """Neither in Git nor on the cluster: only the ledger knew it."""


class Section(StrEnum):
    """Where a report shows a row, in the order of reading."""

    PERSON = "Needs attention"
    CHANGE = "Changed"
    HELD = "Held"
    REST = "Everything else"

    def heading(self, *, applied: bool) -> str:
        """The heading; a run that wrote nothing only would have changed rows."""
        return "Would change" if self is Section.CHANGE and not applied else self.value


class ReportRow(NamedTuple):
    """A difference and what became of it: the broker's answers and what was read back.

    `guarded` says that a guard which nobody let pass is about it.
    """

    difference: Difference
    standing: Standing
    validated: Outcome | None = None
    applied: Outcome | None = None
    verdict: RowVerdict | None = None
    guarded: bool = False
    planned: bool = True
    """Whether a plan is about it; without one a row has no kind, and what it was is unknown."""
    origin: Origin | None = None
    """What is known of a value that the ledger does not know."""

    @property
    def was_written(self) -> bool:
        """Whether this run wrote it."""
        is_changed = self.standing is Standing.CHANGED
        return is_changed and self.applied is not None and self.applied.status is Status.ACCEPTED

    @property
    def section(self) -> Section:
        """Whether a person has to look at it, or it changed (or would), or neither."""
        return Section.PERSON if self.guarded else _SECTIONS[self.standing]


_SECTIONS = dict.fromkeys(Standing, Section.REST) | {
    Standing.UNSETTLED: Section.PERSON,
    Standing.DRIFTED: Section.PERSON,
    Standing.RETURNED: Section.PERSON,
    Standing.CHANGED: Section.CHANGE,
    Standing.PENDING: Section.CHANGE,
    Standing.HELD: Section.HELD,
}


def has_applied(report: Report) -> bool:
    """Whether apply came to the cluster, even if it found nothing to write there."""
    ends = {one.stage: one.status for one in report.stages}
    return bool(report.applied) or ends.get("apply") is StageStatus.DONE


def not_read_back(report: Report) -> tuple[ReportRow, ...]:
    """The rows that this run wrote and asked no broker for again, as verify did not come to it."""
    if report.brokers or not report.applied:
        return ()
    return tuple(row for row in report_rows(report) if row.was_written)


@lru_cache(maxsize=1)  # every form asks for them; with all rows differing, a third of a reconcile
def report_rows(report: Report) -> tuple[ReportRow, ...]:
    """Every row that differs or that a broker disagrees on, what can hurt most first."""
    verdicts = {one.id: one for one in report.verdicts}
    rows = _planned(report, report.plan, verdicts) if report.plan else []
    cluster, asked = report.cluster_id or "", report.asked
    differ = (one for one in verdicts.values() if one.verdict is Verdict.DIFFERS)
    return (*(_unplanned(cluster, one, asked.get(one.id)) for one in differ), *rows)


def _planned(report: Report, plan: Plan, verdicts: dict[Key, RowVerdict]) -> list[ReportRow]:
    """The rows of a plan; takes their verdicts out of `verdicts`."""
    applied, validated = _by_row(report.applied), _by_row(report.validated)
    forgets = report.writes and any(one.behind is not None for one in report.brokers)
    spoke, judged_by = [one.guard for one in plan.refused], plan.judged_by
    left_alone = left_alone_before(plan.policy, plan.applied)
    freed = Guard.UNPROTECTED in spoke
    rows = []
    for difference in plan.differences:
        place = difference.id
        answers = validated.get(place), applied.get(place), verdicts.pop(place, None)
        standing = _standing(difference, *answers, forgets=forgets)
        guarded = bool(spoke) and any(concerns(one, difference, judged_by) for one in spoke)
        guarded |= freed and difference.action in WRITES and left_alone(difference)
        rows.append(
            ReportRow(difference, standing, *answers, guarded, origin=report.origins.get(place))
        )
    return rows


def _by_row(outcomes: Iterable[Outcome]) -> dict[Key, Outcome]:
    return {Key(one.entity, key): one for one in outcomes for key in one.keys}


_TROUBLE = frozenset({Status.REFUSED, Status.STALE, Status.UNKNOWN})


def _standing(
    row: Difference,
    validated: Outcome | None,
    applied: Outcome | None,
    verdict: RowVerdict | None,
    *,
    forgets: bool,
) -> Standing:
    outcome, written = applied or validated, bool(applied and applied.status in DONE)
    wrong = verdict and (
        written or (row.action not in WRITES and verdict.verdict is Verdict.DIFFERS)
    )
    if wrong or (outcome and outcome.status in _TROUBLE):
        return Standing.UNSETTLED
    if row.action is Action.HELD or (outcome and outcome.status is Status.HELD):
        return Standing.IN_SYNC if row.kind is Kind.IN_SYNC else Standing.HELD
    if row.action is Action.FORGET:
        return Standing.DRIFTED if row.is_drift and not forgets else Standing.FORGOTTEN
    if row.action not in WRITES:
        return _REPORTED.get(row.kind, Standing.UNMANAGED)
    if applied and written:
        return Standing.CHANGED if applied.was_written else Standing.FOUND
    return _NOT_WRITTEN.get(row.kind, Standing.PENDING)


_REPORTED = {
    Kind.IN_SYNC: Standing.IN_SYNC,
    Kind.DRIFTED: Standing.DRIFTED,
    Kind.CONFLICT: Standing.DRIFTED,
    Kind.CHANGED_SINCE: Standing.DRIFTED,
    Kind.TAKEOVER: Standing.PENDING,
    Kind.PENDING: Standing.PENDING,
    Kind.LATE_WRITE: Standing.RETURNED,
    Kind.RETURNED: Standing.RETURNED,
}
"""Where a row stands that is not written; all others are on the cluster and not in Git."""

_NOT_WRITTEN = dict.fromkeys(DRIFT_KINDS, Standing.DRIFTED) | dict.fromkeys(
    EARLIER_KINDS, Standing.RETURNED
)
"""Where a row stands that is to be written and was not."""


def _unplanned(cluster: str, verdict: RowVerdict, asked: DesiredRow | None) -> ReportRow:
    """A row that no plan is about, and that a broker holds otherwise than Git says."""
    held = verdict.expected
    where = (cluster, verdict.entity, verdict.key, Kind.IN_SYNC, Action.REPORT)
    difference = Difference(*where, held, held, held, *(None,) * 9)
    if asked is not None:
        difference = difference._replace(
            owner=asked.owner, reason=asked.reason, file=asked.file, line=asked.line
        )
    return ReportRow(difference, Standing.UNSETTLED, verdict=verdict, planned=False)


def count_in_sync(report: Report) -> int:
    """How many quotas of Git the cluster holds when the run is over, as far as it was seen."""
    written = sum(
        row.standing in {Standing.CHANGED, Standing.FOUND} and row.difference.target is not None
        for row in report_rows(report)
    )
    unseen = sum(row.difference.target is not None for row in not_read_back(report))
    return standings(report)[Standing.IN_SYNC] + written - unseen


@lru_cache(maxsize=1)
def standings(report: Report) -> Mapping[Standing, int]:
    """How many rows stand where, in the order of the bar; each standing is there, 0 or more."""
    counts = dict.fromkeys(Standing, 0)
    unread = {one.id for one in report.verdicts if one.verdict is Verdict.UNANSWERED}
    moved = 0
    for row in report_rows(report):
        counts[row.standing] += 1
        if row.difference.kind is not Kind.IN_SYNC:
            unread.discard(row.difference.id)
        elif row.standing is Standing.UNSETTLED:
            moved += 1
    counts[Standing.UNREAD] = len(unread)
    in_sync = report.plan.in_sync - moved - len(unread) if report.plan else report.verified
    return counts | {Standing.IN_SYNC: in_sync}
