"""The stages of a run, and how they end."""

from collections.abc import Iterable
from enum import StrEnum

from msgspec import Struct

from quota_ops.model.errors import QuotaOpsError, Refused
from quota_ops.model.runs.outcome import DONE, Outcome

STAGES = ("check", "describe", "diff", "plan", "validate", "apply", "verify", "report")


class StageStatus(StrEnum):
    """How a stage of a run ended."""

    DONE = "done"
    REFUSED = "refused"
    FAILED = "failed"
    INTERRUPTED = "interrupted"
    """By a signal."""
    KILLED = "killed"
    """While it wrote: a later run found that its process had ended, and recorded that."""
    NOT_ENDED = "not ended"
    """Running, or killed before it could record its end."""
    NOT_RUN = "not run"


DIED = "it ended without recording how"
"""The message of a stage whose process has ended, and that has not recorded its end."""

STOPPED = frozenset(StageStatus) - {StageStatus.DONE, StageStatus.NOT_RUN}
"""The statuses of stages that did not complete their task."""

CUT_OFF = frozenset({StageStatus.INTERRUPTED, StageStatus.KILLED})
"""The statuses of stages that were ended from outside, and whose end is recorded."""


class Life(StrEnum):
    """The status of a run that has not recorded the end of its writes, as every screen shows it."""

    RUNNING = "running"
    GONE = "interrupted"


class StageResult(Struct, frozen=True):
    """A stage, how it ended, how long it took, and its message when it did not succeed."""

    stage: str
    status: StageStatus
    seconds: float | None = None
    message: str | None = None


def name_end(stage: StageResult, applied: Iterable[Outcome]) -> str:
    """Return how a stage ended: `refused` only if it refused all that it was to do.

    `applied` are the outcomes of apply. One without an end was read back by verify since.
    """
    if stage.status is StageStatus.NOT_ENDED:
        return Life.GONE
    if stage.status is StageStatus.REFUSED and stage.stage == "verify":
        return "unsuccessful"
    is_partial = (stage.stage, stage.status) == ("apply", StageStatus.REFUSED) and any(
        outcome.status in DONE or outcome.was_written or outcome.may_be_written
        for outcome in applied
    )
    return "incomplete" if is_partial else stage.status


def explain_failure(error: BaseException) -> tuple[StageStatus, str]:
    """Return the status of a stage that raised an error, and the message to record."""
    if isinstance(error, KeyboardInterrupt):
        return StageStatus.INTERRUPTED, "interrupted by a signal"
    status = StageStatus.REFUSED if isinstance(error, Refused) else StageStatus.FAILED
    is_foreseen = isinstance(error, QuotaOpsError)
    return status, str(error) if is_foreseen else f"{type(error).__name__}: {error}"
