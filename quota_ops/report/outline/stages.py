"""Finds the stages that stopped a run or did not run, and the reasons."""

from quota_ops.model.runs.outcome import DONE
from quota_ops.model.runs.report import Report
from quota_ops.model.runs.stages import STOPPED, Life, StageResult, StageStatus

MOST_LINES = 8

_VERBS = {StageStatus.FAILED: "", StageStatus.NOT_ENDED: "has "}
"""The verb before the word of a stage in a sentence; `was` before all others."""


def stopped_stages(report: Report) -> tuple[StageResult, ...]:
    """Return the stages that stopped the run, except a plan that guards block."""
    guarded = {"plan"} if report.plan and report.plan.refused else set()
    return tuple(
        stage for stage in report.stages if _has_stopped(stage) and stage.stage not in guarded
    )


def stages_not_run(report: Report) -> tuple[str, ...]:
    """Return the stages that did not run because an earlier one stopped the run."""
    if not any(map(_has_stopped, report.stages)):
        return ()
    return tuple(stage.stage for stage in report.stages if stage.status is StageStatus.NOT_RUN)


def _has_stopped(stage: StageResult) -> bool:
    return stage.status in STOPPED


def describe_stop(report: Report) -> str | None:
    """Return the first stage that stopped the run (`apply failed`); None if none did."""
    for stage in stopped_stages(report):
        verb = _VERBS.get(stage.status, "was ")
        if stage.status is StageStatus.NOT_ENDED and report.life:
            verb = "was " if report.life is Life.GONE else "is "
        return f"{stage.stage} {verb}{name_stop(report, stage)}"
    return None


def name_stop(report: Report, stage: StageResult) -> str:
    """Return how a stage stopped: `refused` only if it refused all that it was to do.

    A stage that has not recorded its end has the status of its run in the list of runs.
    """
    if stage.status is StageStatus.NOT_ENDED and report.life:
        return report.life
    if stage.status is not StageStatus.REFUSED:
        return stage.status
    if stage.stage == "verify":
        return "unsuccessful"
    written = (
        outcome.status in DONE or outcome.was_written or outcome.may_be_written
        for outcome in report.applied
    )
    return "incomplete" if stage.stage == "apply" and any(written) else stage.status


def stage_lines(stage: StageResult) -> list[str]:
    """Return why a stage stopped; omits the middle of a long message, which the rows repeat."""
    lines = [text.strip() for text in (stage.message or "no reason was given").split("\n")]
    if len(lines) <= MOST_LINES:
        return lines
    cut = len(lines) - MOST_LINES + 1
    return [*lines[: MOST_LINES - 2], f"… {cut:,} more lines", lines[-1]]
