"""Whether a cluster matches Git, as one sentence that every output shows."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple, Self

from quota_ops.model.runs.report import Report, once_per_report
from quota_ops.model.runs.stages import CUT_OFF
from quota_ops.model.text import counted, plural
from quota_ops.report.outline.brokers import describe_brokers
from quota_ops.report.outline.cells import name_trouble
from quota_ops.report.outline.formats import escape_text, moment
from quota_ops.report.outline.layout import Tone
from quota_ops.report.outline.outline import describe_stop, stopped_stages
from quota_ops.report.outline.past import describe_news, list_drift
from quota_ops.report.outline.row_status import (
    ReportRow,
    RowStatus,
    count_in_sync,
    count_statuses,
    find_leaving,
    list_unread_rows,
    report_rows,
)
from quota_ops.report.outline.sentences import describe_protected


class SyncStatus(StrEnum):
    """The status of a cluster in a word or two, the worst first; of a cut off run, its own.

    `verbs` begin a sentence about one such cluster, and about several.
    """

    tone: Tone
    verbs: tuple[str, str]

    def __new__(cls, text: str, tone: Tone, *verbs: str) -> Self:
        """Make a status that carries its tone and its verbs."""
        status = str.__new__(cls, text)
        status._value_, status.tone, status.verbs = text, tone, (verbs[0], verbs[1])
        return status

    UNKNOWN = "Unknown", Tone.REFUSAL, "is unknown", "are unknown"
    INTERRUPTED = "Interrupted", Tone.REFUSAL, "was interrupted", "were interrupted"
    ATTENTION = "Needs attention", Tone.REFUSAL, "needs attention", "need attention"
    RUNNING = "Running", Tone.PLAIN, "is running", "are running"
    PENDING = "Pending", Tone.CHANGE, "is pending", "are pending"
    IN_SYNC = "In sync", Tone.OK, "is in sync", "are in sync"


class Summary(NamedTuple):
    """The status, the main fact that explains it, and further facts.

    For a run that does not compare with Git, the status names its action: `Altered`.
    """

    status: SyncStatus | str
    reason: str
    details: tuple[str, ...] = ()

    @property
    def fact(self) -> str:
        """Return the beginning of the sentence; a fact about a cluster implies its status."""
        return self.reason if self.status in set(SyncStatus) else f"{self.status}: {self.reason}"

    @property
    def sentence(self) -> str:
        """Return the fact and the details as one sentence."""
        return f"{'; '.join((self.fact, *self.details))}."


@once_per_report
def summarize(report: Report, named: str | None = None) -> Summary:
    """Return whether the cluster matches Git; `named` is its name as the output formats it."""
    summary = _summarize(report, named)
    cut_off = _find_interruption(report)
    return summary._replace(status=cut_off, reason=summary.fact) if cut_off else summary


def _find_interruption(report: Report) -> SyncStatus | None:
    """Return the status of a run that was cut off while it wrote, until verify reads it back."""
    if report.life:
        return SyncStatus[report.life.upper()]
    stopped = {stage.stage for stage in report.stages if stage.status in CUT_OFF}
    is_read_back = bool(report.verification.brokers)
    return SyncStatus.INTERRUPTED if "apply" in stopped and not is_read_back else None


def _summarize(report: Report, named: str | None) -> Summary:
    rows, count = report_rows(report), count_statuses(report)
    cluster = escape_text(named or report.cluster)
    if report.record is not None or (report.plan is None and not report.verification.brokers):
        return _describe_record(report, cluster)
    stop = describe_stop(report)
    unseen = list_unread_rows(report)
    details = tuple(_list_details(report, rows, count, unseen))
    more = (stop, *details) if stop else details
    if troubles := Counter(name_trouble(row) for row in rows if row.status is RowStatus.UNSETTLED):
        status = SyncStatus.UNKNOWN if troubles.keys() <= _UNKNOWN else SyncStatus.ATTENTION
        reason, *parts = _describe_troubles(cluster, troubles)
        return Summary(status, reason, (*parts, *more))
    if moved := (
        describe_overriding(cluster, report)
        or _describe_lost(cluster, report)
        or _describe_drift(cluster, report, count)
        or _describe_moved(cluster, 0 if report.plan else report.verification.moved)
    ):
        return Summary(
            SyncStatus.ATTENTION, moved, (*filter(None, (describe_news(report),)), *more)
        )
    compared = not (report.invalid or report.life or _has_rolled_back(report, count))
    if compared and (waits := _describe_pending(cluster, count, report.verification.undeclared)):
        return Summary(SyncStatus.PENDING, waits, more)
    if (
        missing := _describe_invalid(report)
        or _describe_unreachable(report)
        or ("" if _is_read_back(report) else stop)
        or ("verify did not run" if unseen else None)
    ):
        reason = f"{missing}, so it is unknown whether {cluster} matches Git"
        return Summary(SyncStatus.UNKNOWN, reason, details)
    return _describe_agreement(report, cluster)._replace(details=more)


def _has_rolled_back(report: Report, count: Mapping[RowStatus, int]) -> bool:
    """Return whether a rollback has written all that no hold keeps it from."""
    is_done = count[RowStatus.CHANGED] or count[RowStatus.FOUND]
    return report.rollback is not None and bool(is_done) and not count[RowStatus.PENDING]


def _is_read_back(report: Report) -> bool:
    """Return whether verify read back what apply wrote before it stopped, and nothing else did."""
    stopped = [stage.stage for stage in stopped_stages(report)]
    return stopped == ["apply"] and bool(report.verification.brokers)


def _describe_record(report: Report, cluster: str) -> Summary:
    """Return the action of a run without a plan of Git, or why the status is unknown."""
    if report.record is not None:
        details = tuple(_broker_details(report)) if report.verification.brokers else ()
        return Summary(report.record.word, escape_text(report.record.reason), details)
    why = describe_stop(report) or "no plan was made"
    return Summary(SyncStatus.UNKNOWN, f"{why}, so the state of {cluster} is unknown")


def _describe_agreement(report: Report, cluster: str) -> Summary:
    """Return that a cluster matches Git or, for a rollback, which compares no Git, what it did."""
    if report.rollback is not None:
        did = "Rolled back" if report.applied else "Nothing to roll back"
        return Summary(did, f"run {escape_text(report.rollback.run)} on {cluster}")
    if report.plan is None and (skipped := report.verification.skipped):
        left = plural(skipped, "is held or waiting, and was", "are held or waiting, and were")
        reason = f"{counted(skipped, 'quota')} on {cluster} {left} not compared"
        return Summary(SyncStatus.PENDING, reason)
    what = "Git"
    if report.commit is None:
        uncommitted = report.provenance.uncommitted
        why = "which are not all committed" if uncommitted else "whose commit is unknown"
        what = f"the files, {why}"
    return Summary(SyncStatus.IN_SYNC, f"{cluster} matches {what}")


def _describe_invalid(report: Report) -> str:
    """Return which files are invalid: `payments.yaml (owner payments) is invalid`."""
    if not report.invalid:
        return ""
    first, others = report.invalid[0], len(report.invalid) - 1
    owner = f" (owner {escape_text(first.owner)})" if first.owner else ""
    more = f" and {counted(others, 'other file')}" if others else ""
    return f"{escape_text(first.file)}{owner}{more} {plural(others + 1, 'is', 'are')} invalid"


def describe_overriding(cluster: str, report: Report) -> str:
    """Return how many unmanaged quotas take clients from how many of Git; empty for none.

    What clients get is the promise: Git is stored, and yet does not apply to all of its clients.
    """
    number = count_statuses(report)[RowStatus.OVERRIDING]
    subject = f"{counted(number, 'unmanaged quota')} on {cluster}"
    return _describe_overrides(report, RowStatus.OVERRIDING, subject) if number else ""


def _describe_overrides(report: Report, status: RowStatus, subject: str) -> str:
    """Return what the overriding rows of a status override: `subject` overrides 2 quotas of Git."""
    rows = [row for row in report_rows(report) if row.status is status and row.overrides]
    taken = {override.declared_id for row in rows for override in row.overrides}
    override = plural(len(rows), "overrides", "override")
    return f"{subject} {override} {counted(len(taken), 'quota')} of Git"


def _describe_lost(cluster: str, report: Report) -> str:
    """Return how many limits brokers lost that are not held, by a run without a plan."""
    held = {row.entity for row in report.held}
    number = 0 if report.plan else sum(row.entity not in held for row in report.described.lost)
    lost = f"{plural(number, 'is', 'are')} stored, but not in force"
    return f"{counted(number, 'quota')} of an IP address on {cluster} {lost}" if number else ""


def _describe_drift(cluster: str, report: Report, count: Mapping[RowStatus, int]) -> str:
    """Return how many quotas changed outside Git, or went back to an earlier run's value.

    Held quotas that were changed outside Git are counted too, but alone they are no reason.
    """
    if drifted := count[RowStatus.DRIFTED]:
        number = len(list_drift(report))
        held = number - drifted
        changed = f"{plural(number, 'was', 'were')} changed outside Git"
        also = f", {held:,} of which {_is(held)} held" if held else ""
        return f"{counted(number, 'quota')} on {cluster} {changed}{also}"
    number = count[RowStatus.RETURNED]
    again = f"{plural(number, 'has', 'have')} the value of an earlier run again"
    return f"{counted(number, 'quota')} on {cluster} {again}" if number else ""


def _describe_moved(cluster: str, number: int) -> str:
    """Return how many quotas that left Git moved, by a run without a plan; empty for none."""
    was = plural(number, "is not in Git, and was", "are not in Git, and were")
    changed = f"{was} changed since a run recorded {plural(number, 'it', 'them')}"
    return f"{counted(number, 'quota')} on {cluster} {changed}" if number else ""


_ALSO = {
    RowStatus.UNSETTLED: "not confirmed",
    RowStatus.OVERRIDING: "overriding",
    RowStatus.DRIFTED: "drifted",
    RowStatus.RETURNED: "with the value of an earlier run",
    RowStatus.NOT_JUDGED: "not judged",
    RowStatus.PENDING: "pending",
    RowStatus.HELD: "held",
}
"""The statuses that the details count; the first that occurs is the reason and not repeated.

Pending changes are not a reason while the run has not ended. If a file is invalid, or a rollback
has written, that is the reason, unless one of `_REASONS` is.
"""
_REASONS = frozenset(
    {RowStatus.UNSETTLED, RowStatus.OVERRIDING, RowStatus.DRIFTED, RowStatus.RETURNED}
)


def _describe_pending(cluster: str, count: Mapping[RowStatus, int], undeclared: int) -> str:
    """Return the number of quotas that are pending or held; empty if there are none.

    Without a plan, only those that are not in Git are known to be pending.
    """
    if number := count[RowStatus.PENDING] or undeclared:
        return f"{counted(number, 'change')} to make on {cluster}"
    number = count[RowStatus.HELD]
    return f"{counted(number, 'quota')} on {cluster} {_is(number)} held" if number else ""


def _list_details(
    report: Report,
    rows: Sequence[ReportRow],
    count: Mapping[RowStatus, int],
    unseen: Sequence[ReportRow],
) -> Iterator[str]:
    there = [status for status in _ALSO if count[status]]
    unsaid = report.life is not None and there[:1] == [RowStatus.PENDING]
    is_other = bool(report.invalid) or _has_rolled_back(report, count)
    unsaid |= is_other and not _REASONS.intersection(there)
    yield from (f"{count[status]:,} {_ALSO[status]}" for status in (there if unsaid else there[1:]))
    if held := sum(row.status is RowStatus.HELD and bool(row.overrides) for row in rows):
        yield _describe_overrides(report, RowStatus.HELD, counted(held, "held quota"))
    if leaving := find_leaving(report):
        number = len({row.id for row in leaving})
        override = plural(number, "overrides", "override")
        taken = counted(len({row.declared_id for row in leaving}), "quota")
        yield f"{counted(number, 'quota')} to be cleared {override} {taken} of Git"
    if report.plan and (guards := len(report.plan.refused)):
        yield f"{counted(guards, 'guard')} {plural(guards, 'blocks', 'block')} the plan"
    if unseen:
        yield f"{counted(len(unseen), 'change')} {_were(len(unseen))} {_describe_unseen(report)}"
    else:
        yield from _describe_change(count)
    if unread := count[RowStatus.UNREAD]:
        yield f"{unread:,} not read back"
    if report.rollback is None:
        read = report.verification
        desired = report.plan.desired if report.plan else read.compared + read.skipped
        yield f"{count_in_sync(report):,} of {counted(desired, 'quota')} in sync"
    elif left := len(report.rollback.left):
        yield f"{counted(left, 'change')} left unchanged"
    if protected := describe_protected(report):
        yield protected
    yield from _broker_details(report)
    if unmanaged := count[RowStatus.UNMANAGED]:
        yield f"{unmanaged:,} unmanaged"


def _describe_unseen(report: Report) -> str:
    """Return that changes were not read back or, if an earlier verify read some, not since then."""
    words, read = "written and not read back", report.superseded
    if read is None:
        return words
    verified = f"{read.verified:,} of {counted(read.compared, 'quota')}"
    return f"{words} since {moment(read.at)}, when {verified} {_were(read.verified)} verified"


def _describe_change(count: Mapping[RowStatus, int]) -> Iterator[str]:
    if made := count[RowStatus.CHANGED]:
        yield f"{counted(made, 'change')} made by this run"
    if found := count[RowStatus.FOUND]:
        yield f"{counted(found, 'change')} {plural(found, 'was', 'were')} already stored"


def _broker_details(report: Report) -> Iterator[str]:
    """Yield how many brokers agree; without verify, which brokers are absent."""
    if report.verification.brokers:
        yield describe_brokers(report.verification.brokers)
    elif report.metadata:
        yield from (f"broker {broker.id} {broker.why}" for broker in report.metadata.missed)


def _is(number: int) -> str:
    return plural(number, "is", "are")


def _were(number: int) -> str:
    return plural(number, "was", "were")


_TROUBLES = {
    "refused": "{quotas} on {cluster} {were} rejected by the broker",
    "stale": "{quotas} on {cluster} {were} changed after the plan was made, and not written",
    "unknown": "it is unknown whether {quotas} on {cluster} {were} written",
    "differs": "{quotas} on {cluster} {do} not have the desired value on every broker",
    "not read back": "{changes} on {cluster} {were} not read back",
}
"""The fact, by `name_trouble`, if all rows that need attention have the same trouble."""


def _describe_troubles(cluster: str, troubles: Counter[str]) -> Iterator[str]:
    """Yield the rows' trouble as one fact, and then each trouble if they are not all the same."""
    number = troubles.total()
    template = "{quotas} on {cluster} {are} not confirmed"
    if troubles.keys() <= _NOT_APPLIED:
        template = "{quotas} on {cluster} {were} not applied"
    if len(troubles) == 1:
        template = _TROUBLES[next(iter(troubles))]
    yield template.format(
        cluster=cluster,
        quotas=counted(number, "quota"),
        changes=counted(number, "change"),
        are=_is(number),
        were=_were(number),
        do=plural(number, "does", "do"),
    )
    if len(troubles) > 1:
        yield ", ".join(f"{count:,} {trouble}" for trouble, count in sorted(troubles.items()))


_NOT_APPLIED = frozenset({"refused", "stale"})
_UNKNOWN = frozenset({"unknown", "not read back"})
"""The troubles of rows that may have the desired value."""


def _describe_unreachable(report: Report) -> str | None:
    brokers = report.verification.brokers
    if brokers and brokers[0].lagging is None and brokers[0].bootstrap:
        return "the bootstrap address did not respond"
    unreachable = [
        str(broker.broker) for broker in brokers if broker.lagging is None and not broker.absent
    ]
    if unreachable:
        return f"broker {', '.join(unreachable)} did not respond"
    absent = [broker.broker for broker in brokers if broker.absent]
    if not brokers and report.metadata:
        absent = [broker.id for broker in report.metadata.missed]
    return f"broker {', '.join(map(str, absent))} could not be queried" if absent else None


def describe_unseen_brokers(report: Report) -> str | None:
    """Return which brokers a run without verify could not query; None for none."""
    if report.metadata is None or report.verification.brokers or not report.metadata.missed:
        return None
    missed = [f"{broker.named} {broker.why}" for broker in report.metadata.missed]
    return f"not every broker could be queried: {'; '.join(missed)}"
