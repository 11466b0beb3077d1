"""The status of each row at the end of a run, and the section that shows it."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from itertools import groupby
from operator import attrgetter
from typing import Self

from msgspec import Struct

from quota_ops.model.plans.effect import Effect, Risk
from quota_ops.model.plans.guard_rules import is_blocked_by
from quota_ops.model.plans.hold import Hold, find_hold
from quota_ops.model.plans.plan import Plan, rank_by_risk
from quota_ops.model.plans.strict_policy import Grounds
from quota_ops.model.quotas.difference import (
    DRIFT_KINDS,
    EARLIER_KINDS,
    WRITES,
    Action,
    Difference,
    Kind,
)
from quota_ops.model.quotas.entity import IP, Entity
from quota_ops.model.quotas.rows import DesiredRow, Key, OverrideRow
from quota_ops.model.runs.outcome import DONE, Outcome, Status
from quota_ops.model.runs.report import Report, once_per_report
from quota_ops.model.runs.run import Origin
from quota_ops.model.runs.stages import StageStatus
from quota_ops.model.runs.verification import RowVerdict, Verdict
from quota_ops.report.outline.layout import Tone


class RowStatus(StrEnum):
    """The status of a row at the end of a run, in the order of the report's bar."""

    meaning: str
    tone: Tone

    def __new__(cls, text: str, meaning: str, tone: Tone = Tone.CHANGE) -> Self:
        """Make a status that carries its meaning and its tone."""
        status = str.__new__(cls, text)
        status._value_, status.meaning, status.tone = text, meaning, tone
        return status

    IN_SYNC = "in sync", "the cluster matches Git", Tone.OK
    OVERRIDDEN = (
        "overridden for some",
        "stored as in Git, and some clients get another quota in its place",
        Tone.REFUSAL,
    )
    CHANGED = (
        "changed by this run",
        "accepted by the broker; verify, if it ran, found no other value",
        Tone.OK,
    )
    FOUND = "already as planned", "the cluster stored it before this run sent anything", Tone.OK
    UNREAD = (
        "not read back",
        "this run did not change it, and no broker responded afterwards",
        Tone.CONTEXT,
    )
    """Only counted, never a row."""
    PENDING = "pending", "waits to be set or cleared"
    OVERRIDING = (
        "overriding",
        "unmanaged, and in force for clients of quotas that Git declares",
        Tone.REFUSAL,
    )
    DRIFTED = "drifted", "changed on the cluster outside Git"
    RETURNED = "returned", "has an earlier run's value again"
    HELD = "held", "not changed while a person holds it"
    NOT_JUDGED = "not judged", "not changed, because its file is invalid", Tone.REFUSAL
    UNSETTLED = (
        "not confirmed",
        "rejected, stale, unknown, different on a broker, or not read back",
        Tone.REFUSAL,
    )
    UNMANAGED = "unmanaged", "on the cluster, and not declared in Git", Tone.CONTEXT
    FORGOTTEN = (
        "forgotten",
        "neither in Git nor on the cluster; only the ledger knew it",
        Tone.CONTEXT,
    )


class Section(StrEnum):
    """The section of a report that shows a row, in the order of reading."""

    PERSON = "Needs attention"
    CHANGE = "Changed"
    HELD = "Held"
    REST = "Everything else"

    def heading(self, *, applied: bool) -> str:
        """Return the heading; a run that did not apply has no changed rows, only planned ones."""
        return "Would change" if self is Section.CHANGE and not applied else self.value


class ReportRow(Struct, frozen=True, gc=False):
    """A difference, its outcomes and its verdict; `guards` block the plan because of this row."""

    difference: Difference
    status: RowStatus
    validated: Outcome | None = None
    applied: Outcome | None = None
    verdict: RowVerdict | None = None
    guards: tuple[str, ...] = ()
    planned: bool = True
    """Whether a plan compared the row; otherwise its kind and its previous value are unknown."""
    origin: Origin | None = None
    """Where a value that is not in the ledger came from."""
    effect: Effect | None = None
    """What a write does to whom; None if the values before and after show it."""
    overrides: tuple[OverrideRow, ...] = ()
    """Declared rows that lose clients to it: see OVERRIDES."""
    undeclared: frozenset[str] = frozenset()
    """The entities with the same key that only the cluster has, and that stay there."""
    overridden: tuple[str, ...] = ()
    """The guards that found this row, and that somebody overrode."""

    @property
    def guarded(self) -> bool:
        """Return whether a guard blocks the plan because of this row."""
        return bool(self.guards)

    @property
    def risk(self) -> Risk | None:
        """Return what the write does to the limit of a client at worst, as guards compare it."""
        return None if self.effect is None else self.effect.risk

    @property
    def was_written(self) -> bool:
        """Return whether this run wrote it."""
        is_changed = self.status is RowStatus.CHANGED
        return is_changed and self.applied is not None and self.applied.status is Status.ACCEPTED

    @property
    def is_done(self) -> bool:
        """Return whether this run wrote it, or found it as planned."""
        return self.status in {RowStatus.CHANGED, RowStatus.FOUND}

    @property
    def section(self) -> Section:
        """Return the section that shows it; what a guard blocks or a stopped run left is first."""
        waits = self.applied is not None and self.applied.status in _NOT_WRITTEN_YET
        return Section.PERSON if self.guarded or waits else _SECTIONS[self.status]


_NOT_WRITTEN_YET = frozenset({Status.WAITING, Status.NOT_SENT})
_SECTIONS = dict.fromkeys(RowStatus, Section.REST) | {
    RowStatus.UNSETTLED: Section.PERSON,
    RowStatus.OVERRIDING: Section.PERSON,
    RowStatus.DRIFTED: Section.PERSON,
    RowStatus.RETURNED: Section.PERSON,
    RowStatus.CHANGED: Section.CHANGE,
    RowStatus.PENDING: Section.CHANGE,
    RowStatus.HELD: Section.HELD,
}


def has_applied(report: Report) -> bool:
    """Return whether apply ran, even if it had nothing to write."""
    ends = {stage.stage: stage.status for stage in report.stages}
    return bool(report.applied) or ends.get("apply") is StageStatus.DONE


def list_unread_rows(report: Report) -> tuple[ReportRow, ...]:
    """Return the rows that this run wrote and did not read back, because verify did not run."""
    if report.verification.brokers or not report.applied:
        return ()
    return tuple(row for row in report_rows(report) if row.was_written)


# Every output needs the rows; if all of them differ, this takes a third of a reconcile.
@once_per_report
def report_rows(report: Report) -> tuple[ReportRow, ...]:
    """Return every row that differs, the riskiest first: those that a guard blocks."""
    verdicts = {verdict.id: verdict for verdict in report.verification.verdicts}
    rows = _planned(report, report.plan, verdicts) if report.plan else _list_overriding(report)
    cluster, declared = report.cluster_id or "", report.declared
    differ = (verdict for verdict in verdicts.values() if verdict.verdict is Verdict.DIFFERS)
    return (*(_unplanned(cluster, verdict, declared.get(verdict.id)) for verdict in differ), *rows)


def _planned(report: Report, plan: Plan, verdicts: dict[Key, RowVerdict]) -> list[ReportRow]:
    """Return the rows of a plan; remove their verdicts from `verdicts`."""
    applied, validated = _by_row(report.applied), _by_row(report.validated)
    brokers = report.verification.brokers
    forgets = report.writes and any(broker.lagging is not None for broker in brokers)
    blocking = {guard.guard for guard in plan.refused}
    names = dict.fromkeys(guard.guard for guard in plan.guards)
    earlier = () if plan.applied_policy is None else (plan.applied_policy,)
    grounds = Grounds(plan.policy, earlier, report.throttling)
    rows, overrides, undeclared = [], _group_overrides(report), _list_undeclared(plan)
    overridden = find_overridden(report)
    origins = {**report.origins} | {row.id: Origin(row.words) for row in report.described.lost}
    for difference in plan.differences:
        place = difference.id
        results = validated.get(place), applied.get(place), verdicts.pop(place, None)
        status = _find_status(difference, *results, forgets=forgets)
        origin, effect = origins.get(place), report.effects.get(place)
        if status is RowStatus.HELD and _is_newer(difference, origin, plan.holds):
            status = RowStatus.OVERRIDING
        if status is RowStatus.IN_SYNC and place in overridden:
            status = RowStatus.OVERRIDDEN
        risk = None if effect is None else effect.risk
        found = [guard for guard in names if is_blocked_by(guard, difference, grounds, risk)]
        guards = tuple(guard for guard in found if guard in blocking)
        passed = tuple(guard for guard in found if guard not in blocking)
        taken = overrides.get(place, ())
        others = undeclared.get(difference.key, frozenset()) if effect or taken else frozenset()
        rows.append(
            ReportRow(
                difference,
                status,
                *results,
                guards=guards,
                origin=origin,
                effect=effect,
                overrides=taken,
                undeclared=others,
                overridden=passed,
            )
        )
    if blocking or report.effects:  # otherwise they are in order already
        rows.sort(key=_rank)
    return rows


def _is_newer(row: Difference, origin: Origin | None, holds: Sequence[Hold]) -> bool:
    """Return whether an overriding quota was stored after its hold: nobody decided about it."""
    if row.kind is not Kind.OVERRIDING or origin is None or origin.after is None:
        return False
    hold = find_hold(holds, Entity.parse(row.entity))
    return hold is not None and datetime.fromisoformat(origin.after) > hold.at


def _list_undeclared(plan: Plan) -> dict[str, frozenset[str]]:
    """Return the entities that only the cluster has, and that stay there, by key."""
    stays = (Action.REPORT, Action.HELD)
    rows = [row for row in plan.differences if row.after is None and row.action in stays]
    return {
        key: frozenset(row.entity for row in rows if row.key == key)
        for key in {row.key for row in rows}
    }


def _rank(row: ReportRow) -> tuple[object, ...]:
    is_overriding = row.status is RowStatus.OVERRIDING
    return (not is_overriding, not row.guarded, rank_by_risk(row.difference, row.effect))


def _group_overrides(report: Report) -> dict[Key, tuple[OverrideRow, ...]]:
    """Return the overrides by their unmanaged rows, those of the most clients first."""
    return {
        key: tuple(sorted(rows, key=_count_names))
        for key, rows in groupby(report.overrides or (), attrgetter("id"))
    }


def _count_names(row: OverrideRow) -> int:
    return sum(name is not None for _, name in Entity.parse(row.declared_entity).parts)


def find_respelled(rows: Iterable[OverrideRow]) -> OverrideRow | None:
    """Return the pair of two spellings of one address: nothing else overrides a single address."""
    return next((row for row in rows if Entity.parse(row.declared_entity).as_dict().get(IP)), None)


def _list_overriding(report: Report) -> list[ReportRow]:
    """Return the overriding rows of a run without a plan."""
    rows, groups = [], _group_overrides(report)
    entities = frozenset(key.entity for key in groups)
    for key, taken in groups.items():
        difference = Difference(
            taken[0].cluster,
            *key,
            Kind.OVERRIDING,
            Action.REPORT,
            before=taken[0].value,
            after=None,
            held=taken[0].held,
        )
        status = _find_status(difference, None, None, None, forgets=False)
        origin = report.origins.get(key)
        row = ReportRow(difference, status, origin=origin, overrides=taken, undeclared=entities)
        rows.append(row)
    return rows


def _by_row(outcomes: Iterable[Outcome]) -> dict[tuple[str, str], Outcome]:
    return {(outcome.entity, key): outcome for outcome in outcomes for key in outcome.keys}


_TROUBLE = frozenset({Status.REFUSED, Status.STALE, Status.UNKNOWN})


def _find_status(
    row: Difference,
    validated: Outcome | None,
    applied: Outcome | None,
    verdict: RowVerdict | None,
    *,
    forgets: bool,
) -> RowStatus:
    outcome, written = applied or validated, bool(applied and applied.status in DONE)
    wrong = verdict and (
        written or (row.action not in WRITES and verdict.verdict is Verdict.DIFFERS)
    )
    if wrong or (outcome and outcome.status in _TROUBLE):
        return RowStatus.UNSETTLED
    is_held = row.action is Action.HELD or (row.kind is Kind.OVERRIDING and row.held)
    if is_held or (outcome and outcome.status is Status.HELD):
        return _HELD.get(row.kind, RowStatus.HELD)
    if row.action is Action.FORGET:
        return RowStatus.DRIFTED if row.is_drift and not forgets else RowStatus.FORGOTTEN
    if row.action not in WRITES:
        return _REPORTED.get(row.kind, RowStatus.UNMANAGED)
    if applied and written:
        return RowStatus.CHANGED if applied.was_written else RowStatus.FOUND
    return _NOT_WRITTEN.get(row.kind, RowStatus.PENDING)


_HELD = {Kind.IN_SYNC: RowStatus.IN_SYNC, Kind.NOT_JUDGED: RowStatus.NOT_JUDGED}
"""The status of a held row; any other kind is held."""

_REPORTED = {
    Kind.OVERRIDING: RowStatus.OVERRIDING,
    Kind.IN_SYNC: RowStatus.IN_SYNC,
    Kind.DRIFTED: RowStatus.DRIFTED,
    Kind.CONFLICT: RowStatus.DRIFTED,
    Kind.CHANGED_SINCE: RowStatus.DRIFTED,
    Kind.TAKEOVER: RowStatus.PENDING,
    Kind.PENDING: RowStatus.PENDING,
    Kind.LATE_WRITE: RowStatus.RETURNED,
    Kind.RETURNED: RowStatus.RETURNED,
}
"""The status of a row that is not to be written; any other kind is unmanaged."""

_NOT_WRITTEN = dict.fromkeys(DRIFT_KINDS, RowStatus.DRIFTED) | dict.fromkeys(
    EARLIER_KINDS, RowStatus.RETURNED
)
"""The status of a row that was to be written and was not; any other kind is pending."""


def _unplanned(cluster: str, verdict: RowVerdict, declared: DesiredRow | None) -> ReportRow:
    """Return the row of a verdict without a plan: a broker stores a different value than Git."""
    desired = verdict.expected
    difference = Difference(
        cluster,
        *verdict.id,
        Kind.IN_SYNC,
        Action.REPORT,
        before=desired,
        after=desired,
        verified=desired,
    )
    if declared is not None:
        difference = difference._replace(
            owner=declared.owner, reason=declared.reason, file=declared.file, line=declared.line
        )
    return ReportRow(difference, RowStatus.UNSETTLED, verdict=verdict, planned=False)


@once_per_report
def count_in_sync(report: Report) -> int:
    """Return the number of Git's quotas that the cluster stores after the run, as far as known."""
    overridden = find_overridden(report)
    written = sum(
        row.is_done
        and row.difference.target is not None
        and not (overridden and row.difference.id in overridden)
        for row in report_rows(report)
    )
    unseen = sum(row.difference.target is not None for row in list_unread_rows(report))
    return count_statuses(report)[RowStatus.IN_SYNC] + written - unseen


@once_per_report
def find_overridden(report: Report) -> frozenset[Key]:
    """Return the declared rows that are not in force for all of their clients.

    Overriding rows or rows still to clear come first, or brokers lost a limit. A plan sets that
    again, so it counts as drifted there.
    """
    taken = (*(report.overrides or ()), *find_leaving(report))
    lost = () if report.plan else (row.id for row in report.described.lost)
    return frozenset((*(row.declared_id for row in taken), *lost))


def find_leaving(report: Report) -> list[OverrideRow]:
    """Return the quotas to be cleared that still come first for clients of declared ones."""
    applied = report.applied if report.leaving else ()
    cleared = {row for done in applied if done.status in DONE for row in done.rows}
    return [row for row in report.leaving if row.id not in cleared]


def count_not_in_force(report: Report) -> int:
    """Return how many verified rows do not apply to all their clients."""
    differ = {verdict.id for verdict in report.verification.verdicts}
    held = {row.entity for row in report.held}
    return sum(key.entity not in held for key in find_overridden(report) - differ)


@once_per_report
def count_statuses(report: Report) -> Mapping[RowStatus, int]:
    """Return the number of rows of each status, including zeros, in the order of the bar."""
    rows = report_rows(report)
    differ = {row.difference.id for row in rows if row.difference.kind is not Kind.IN_SYNC}
    moved = {row.difference.id for row in rows if row.status is RowStatus.UNSETTLED}
    read = report.verification
    unread = {verdict.id for verdict in read.verdicts if verdict.verdict is Verdict.UNANSWERED}
    overridden = count_not_in_force(report)
    in_sync = read.verified - overridden
    if report.plan:
        overridden = len(find_overridden(report) - differ - moved - unread)
        in_sync = report.plan.stored - len((moved | unread) - differ) - overridden
    counts = dict.fromkeys(RowStatus, 0) | Counter(row.status for row in rows)
    return counts | {
        RowStatus.IN_SYNC: in_sync,
        RowStatus.OVERRIDDEN: overridden,
        RowStatus.UNREAD: len(unread - differ),
    }
