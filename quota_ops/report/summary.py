"""Whether a cluster matches Git, in one sentence that every output shares."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple

from quota_ops.model.report import STOPPED, Report, StageResult, StageStatus, has_not_ended
from quota_ops.model.text import counted, plural
from quota_ops.report.brokers import brokers_words
from quota_ops.report.cells import trouble_word
from quota_ops.report.standing import (
    ReportRow,
    Standing,
    count_in_sync,
    not_read_back,
    report_rows,
    standings,
)
from quota_ops.report.wording import shown


class SyncStatus(StrEnum):
    """The status of a cluster in a word or two."""

    IN_SYNC = "In sync"
    PENDING = "Pending"
    ATTENTION = "Needs attention"
    UNKNOWN = "Unknown"


class Answer(NamedTuple):
    """The status, the fact that it rests on, and what else is worth knowing.

    Of a run that compares nothing, the word is what it did: `Altered`.
    """

    word: SyncStatus | str
    reason: str
    details: tuple[str, ...] = ()

    @property
    def fact(self) -> str:
        """What the sentence begins with; a fact about a cluster implies its status."""
        return self.reason if self.word in set(SyncStatus) else f"{self.word}: {self.reason}"

    @property
    def sentence(self) -> str:
        """The fact and the details as one sentence."""
        return f"{'; '.join((self.fact, *self.details))}."


def summary_sentence(report: Report) -> str:
    """Whether the cluster matches Git, and why."""
    return answer(report).sentence


@lru_cache(maxsize=2)
def answer(report: Report, named: str | None = None) -> Answer:
    """Whether the cluster matches Git; `named` is what the cluster is called there."""
    rows, count = report_rows(report), standings(report)
    cluster = shown(named or report.cluster)
    if report.plan is None and not report.brokers:
        return _uncompared(report, cluster)
    stop = _stop(report)
    unseen = not_read_back(report)
    details = tuple(_details(report, rows, count, unseen))
    more = (stop, *details) if stop else details
    if number := count[Standing.UNSETTLED]:
        reason = f"{counted(number, 'quota')} on {cluster} {_is(number)} unsettled"
        sure = any(trouble_word(row) not in _NO_ANSWER for row in rows if _is_unsettled(row))
        status = SyncStatus.ATTENTION if sure else SyncStatus.UNKNOWN
        return Answer(status, reason, (_why(rows), *more))
    if moved := _moved(cluster, count):
        return Answer(SyncStatus.ATTENTION, moved, more)
    if not has_not_ended(report.stages) and (waits := _waits(cluster, count)):
        return Answer(SyncStatus.PENDING, waits, more)
    if missing := _silence(report) or stop or ("verify did not run" if unseen else None):
        reason = f"{missing}, so it is unknown whether {cluster} matches Git"
        return Answer(SyncStatus.UNKNOWN, reason, details)
    return Answer(SyncStatus.IN_SYNC, _agreed(report, cluster), details)


def _uncompared(report: Report, cluster: str) -> Answer:
    """What a run without a plan did, or why nothing is known."""
    if report.record is not None:
        return Answer(report.record.word, shown(report.record.reason))
    why = _stop(report) or "no plan was made"
    return Answer(SyncStatus.UNKNOWN, f"{why}, so the state of {cluster} is unknown")


def _agreed(report: Report, cluster: str) -> str:
    part = ", as far as it was compared" if report.plan is None and _left(report) else ""
    if report.rollback is None and report.commit is None:
        uncommitted = report.provenance.uncommitted
        why = "which are not all committed" if uncommitted else "whose commit is unknown"
        return f"{cluster} matches the files, {why}{part}"
    if report.rollback is None:
        return f"{cluster} matches Git{part}"
    left = "has been rolled back" if report.applied else "left nothing to roll back"
    return f"run {shown(report.rollback.run)} {left} on {cluster}"


def _left(report: Report) -> int:
    """How many rows verify left out, because somebody holds them or the run did."""
    return max((one.left for one in report.brokers), default=0)


def _moved(cluster: str, count: Mapping[Standing, int]) -> str:
    """What somebody else, or an earlier run of ours, has written since; empty when nothing was."""
    if number := count[Standing.DRIFTED]:
        changed = f"{plural(number, 'was', 'were')} changed outside Git"
        return f"{counted(number, 'quota')} on {cluster} {changed}"
    number = count[Standing.RETURNED]
    again = f"{plural(number, 'has', 'have')} the value of an earlier run again"
    return f"{counted(number, 'quota')} on {cluster} {again}" if number else ""


_ALSO = {
    Standing.UNSETTLED: "unsettled",
    Standing.DRIFTED: "drifted",
    Standing.RETURNED: "with the value of an earlier run",
    Standing.PENDING: "pending",
    Standing.HELD: "held",
}
"""What an answer counts beside its reason, which is the first of them that there is.

Of a run that has not ended, that it waits is no reason.
"""


def _waits(cluster: str, count: Mapping[Standing, int]) -> str:
    """What is not yet as Git says, and nobody's fault; empty when it is all there."""
    if number := count[Standing.PENDING]:
        return f"{counted(number, 'change')} to make on {cluster}"
    number = count[Standing.HELD]
    return f"{counted(number, 'quota')} on {cluster} {_is(number)} held" if number else ""


def _details(
    report: Report,
    rows: Sequence[ReportRow],
    count: Mapping[Standing, int],
    unseen: Sequence[ReportRow],
) -> Iterator[str]:
    there = [one for one in _ALSO if count[one]]
    unsaid = has_not_ended(report.stages) and there[:1] == [Standing.PENDING]
    yield from (f"{count[one]:,} {_ALSO[one]}" for one in (there if unsaid else there[1:]))
    if report.plan and (guards := len(report.plan.refused)):
        yield f"{counted(guards, 'guard')} {plural(guards, 'blocks', 'block')} the plan"
    if unseen:
        were = plural(len(unseen), "was", "were")
        yield f"{counted(len(unseen), 'change')} {were} written and not read back"
    else:
        yield from _made(rows)
    if unread := count[Standing.UNREAD]:
        yield f"{unread:,} not read back"
    compared = report.verified + len(report.verdicts)
    desired = report.plan.desired if report.plan else compared + _left(report)
    yield f"{count_in_sync(report):,} of {counted(desired, 'quota')} in sync"
    if report.rollback and (left := len(report.rollback.left)):
        yield f"{counted(left, 'change')} left unchanged"
    yield from _brokers(report)
    if unmanaged := count[Standing.UNMANAGED]:
        yield f"{unmanaged:,} unmanaged"


def _made(rows: Sequence[ReportRow]) -> Iterator[str]:
    ended = Counter(row.standing for row in rows)
    if made := ended[Standing.CHANGED]:
        yield f"{counted(made, 'change')} made by this run"
    if found := ended[Standing.FOUND]:
        yield f"{counted(found, 'change')} {plural(found, 'was', 'were')} there already"


def _brokers(report: Report) -> Iterator[str]:
    """How many brokers agree; where none was read back from, which are absent."""
    if report.brokers:
        yield brokers_words(report.brokers)
    elif report.metadata:
        yield from (f"broker {one.id} {one.why}" for one in report.metadata.missed)


def _is(number: int) -> str:
    return plural(number, "is", "are")


def _why(rows: Sequence[ReportRow]) -> str:
    reasons = Counter(trouble_word(row) for row in rows if _is_unsettled(row))
    return ", ".join(f"{number:,} {reason}" for reason, number in sorted(reasons.items()))


def _is_unsettled(row: ReportRow) -> bool:
    return row.standing is Standing.UNSETTLED


_NO_ANSWER = frozenset({"unknown", "unanswered"})


def _silence(report: Report) -> str | None:
    if report.brokers and report.brokers[0].behind is None and report.brokers[0].bootstrap:
        return "the bootstrap address did not respond"
    silent = [str(one.broker) for one in report.brokers if one.behind is None and not one.absent]
    if silent:
        return f"broker {', '.join(silent)} did not respond"
    absent = [one.broker for one in report.brokers if one.absent]
    if not report.brokers and report.metadata:
        absent = [one.id for one in report.metadata.missed]
    return f"broker {', '.join(map(str, absent))} could not be queried" if absent else None


def unseen_words(report: Report) -> str | None:
    """Return which brokers a run without verify could not ask; None where it missed none."""
    if report.metadata is None or report.brokers or not report.metadata.missed:
        return None
    missed = [f"{one.named} {one.why}" for one in report.metadata.missed]
    return f"not every broker could be queried: {'; '.join(missed)}"


def stopped_stages(report: Report) -> tuple[StageResult, ...]:
    """The stages that failed or were refused; a plan that guards refused says so by its guards."""
    guarded = {"plan"} if report.plan and report.plan.refused else set()
    return tuple(one for one in report.stages if _has_stopped(one) and one.stage not in guarded)


def stages_not_run(report: Report) -> tuple[str, ...]:
    """The stages that a failure or a refusal kept from running."""
    if not any(map(_has_stopped, report.stages)):
        return ()
    return tuple(one.stage for one in report.stages if one.status is StageStatus.NOT_RUN)


def _has_stopped(stage: StageResult) -> bool:
    return stage.status in STOPPED


_STOPPED_WORDS = {
    StageStatus.FAILED: "failed",
    StageStatus.REFUSED: "was refused",
    StageStatus.INTERRUPTED: "was interrupted",
    StageStatus.NOT_ENDED: "has not ended",
}


def _stop(report: Report) -> str | None:
    for stage in stopped_stages(report):
        return f"{stage.stage} {_STOPPED_WORDS[stage.status]}"
    return None
