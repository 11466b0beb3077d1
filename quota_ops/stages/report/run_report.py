"""A run's artefacts as a report; what is missing is left out, what is damaged is said."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from typing import Any, TypeVar

from quota_ops.model.errors import InvalidInput
from quota_ops.model.moment import iso_utc
from quota_ops.model.outcome import Outcome
from quota_ops.model.report import STAGES, Record, Report, StageResult, StageStatus, has_not_ended
from quota_ops.model.rollback import Rollback
from quota_ops.model.rows import DesiredRow, HoldRow, Key
from quota_ops.model.tables import BATCHES, DESIRED, DIFFERENCES, HOLDS
from quota_ops.model.verification import BrokerAnswer, RowVerdict
from quota_ops.stages.plan import assemble_plan
from quota_ops.stages.report.command_report import read_record
from quota_ops.stages.verify.record import compute_applied_digest
from quota_ops.store.attempt import outcomes_so_far
from quota_ops.store.origins import ORIGINS, read_origins
from quota_ops.store.run_folder import (
    APPLIED,
    APPROVAL,
    AUDITED,
    FACTS,
    FINDINGS,
    METADATA,
    PLAN,
    POLICY,
    REPORT,
    ROLLBACK,
    VALIDATED,
    VERIFIED,
    RunFolder,
    stage_file,
)
from quota_ops.store.run_json import typed, verification_from_json
from quota_ops.store.run_marks import Life, life

Part = TypeVar("Part")

_RECORDED = ("adopt", "release")
"""Stages beside the eight: those of commands that have no plan."""

_SETTLED = "The next run that writes to this cluster settles what it sent."
_SINCE = {
    Life.AT_WORK: "it is at work",
    Life.GONE: f"it was killed. {_SETTLED}",
    Life.UNKNOWN: f"it is at work, or was killed. {_SETTLED}",
}
"""What is known of a stage that has recorded no end."""


def read_report(folder: RunFolder, versions: tuple[tuple[str, str], ...] = ()) -> Report:
    """What a run has left so far; `versions` are those of the programs that made it.

    A stage whose artefact cannot be read has failed, whatever it said of itself.
    """
    about = folder.about()
    parts = _Parts(folder)
    policy = parts.read("check", POLICY, folder.policy)
    plan = parts.read("plan", PLAN, lambda: folder.plan()[0])
    if plan is None and not (folder.has(PLAN) or folder.has(VERIFIED)):
        plan = parts.read("diff", DIFFERENCES.file, lambda: assemble_plan(folder))
    verification = parts.read(
        "verify", VERIFIED, lambda: folder.read_as(VERIFIED, partial(_last_verification, folder))
    )
    stages = tuple(parts.read_stage(stage) for stage in STAGES[:-1])
    validated, applied = parts.outcomes("validate", VALIDATED), parts.outcomes("apply", APPLIED)
    ended = not has_not_ended(stages)
    if not ended:  # what is there of later stages is an earlier attempt's
        verification = None
        applied = parts.read("apply", BATCHES.file, lambda: outcomes_so_far(folder)) or applied
    brokers, verdicts, verified = verification or ((), (), 0)
    return Report(
        cluster=about["cluster"],
        cluster_id=policy.cluster_id if policy else None,
        run=about["run"],
        provenance=about["provenance"],
        started=about["started"],
        finished=iso_utc(),
        stages=tuple(map(parts.mark_damaged, stages)) if ended else _until_apply(stages),
        plan=plan,
        validated=validated,
        applied=applied,
        brokers=brokers,
        verdicts=verdicts,
        verified=verified,
        versions=versions,
        writes=bool(applied) or folder.has(APPLIED),
        facts=parts.read("describe", FACTS, folder.facts),
        audit=parts.read("report", AUDITED, lambda: folder.read_json(AUDITED)["failure"]),
        metadata=parts.read("describe", METADATA, folder.metadata),
        rollback=parts.read("diff", ROLLBACK, lambda: folder.read_as(ROLLBACK, Rollback.from_json)),
        decisions=parts.read("apply", APPROVAL, folder.decisions) or (),
        findings=parts.read("plan", FINDINGS, folder.findings) or (),
        asked=parts.read("check", DESIRED.file, lambda: _asked(folder, verdicts)) or {},
        origins=parts.read("plan", ORIGINS, lambda: read_origins(folder)) or {},
        held=() if plan else parts.read("describe", HOLDS.file, lambda: _held(folder)) or (),
        record=parts.record(),
    )


def read_end_time(folder: RunFolder) -> str:
    """When the last stage of a run ended, by its own record, as ISO 8601 in UTC.

    The start of the run where none says, as in a run of an earlier version without a report.
    """
    files = {stage_file(stage): "at" for stage in (*STAGES, *_RECORDED)} | {REPORT: "finished"}
    times = [_time(folder, name, key) for name, key in files.items() if folder.has(name)]
    return max(filter(None, times), default=str(folder.about()["started"]))


def _time(folder: RunFolder, name: str, key: str) -> str | None:
    with suppress(InvalidInput, ValueError):  # what is damaged is said elsewhere
        at = folder.read_as(name, lambda told: typed(told.get(key), str | None), before="rows")
        return iso_utc(datetime.fromisoformat(at).astimezone(UTC)) if at else None
    return None


def _last_verification(
    folder: RunFolder, kept: Mapping[str, Any]
) -> tuple[tuple[BrokerAnswer, ...], tuple[RowVerdict, ...], int] | None:
    """What the last verify found; None when it failed, or apply ran again since."""
    is_earlier = kept.get("earlier") or kept.get("applied") not in {
        None,
        compute_applied_digest(folder),
    }
    return None if is_earlier else verification_from_json(kept)


def _until_apply(stages: tuple[StageResult, ...]) -> tuple[StageResult, ...]:
    after = STAGES[STAGES.index("apply") + 1 :]
    return tuple(
        StageResult(one.stage, StageStatus.NOT_RUN) if one.stage in after else one for one in stages
    )


def _asked(folder: RunFolder, verdicts: Sequence[RowVerdict]) -> dict[Key, DesiredRow]:
    """What Git says of the rows that are not verified."""
    wrong = {one.id for one in verdicts}
    rows = folder.read_rows(DESIRED) if wrong else ()
    return {row.id: row for row in rows if row.id in wrong}


def _held(folder: RunFolder) -> tuple[HoldRow, ...]:
    return tuple(map(HoldRow._make, to_rows(folder.read_table(HOLDS))))


class _Parts:
    """Reads the parts of a run, and remembers of which stage one is damaged."""

    def __init__(self, folder: RunFolder) -> None:
        self._folder = folder
        self._damaged: dict[str, str] = {}

    def read(self, stage: str, name: str, read: Callable[[], Part]) -> Part | None:
        """One artefact of a stage; None when it is missing or damaged."""
        if not self._folder.has(name):
            return None
        try:
            return read()
        except InvalidInput as error:
            self._damaged[stage] = error.message
            return None

    def record(self) -> Record | None:
        """What a run without a plan did; None when that is damaged."""
        try:
            return read_record(self._folder)
        except (InvalidInput, AttributeError, TypeError):  # `show` tells of the artefact itself
            return None

    def outcomes(self, stage: str, name: str) -> tuple[Outcome, ...]:
        """The outcomes of a stage, or none."""
        return self.read(stage, name, lambda: self._folder.outcomes(name)) or ()

    def read_stage(self, stage: str) -> StageResult:
        """Return how a stage ended, as `mark_damaged` does."""
        result = self.read(stage, stage_file(stage), lambda: self._folder.stage_result(stage))
        result = result or StageResult(stage, StageStatus.NOT_RUN)
        if result.status is StageStatus.NOT_ENDED:
            result = result._replace(message=_SINCE[life(self._folder.place)])
        return self.mark_damaged(result)

    def mark_damaged(self, result: StageResult) -> StageResult:
        """Return a stage's result, or a failed one when an artefact of the stage was damaged."""
        if result.stage not in self._damaged:
            return result
        return StageResult(result.stage, StageStatus.FAILED, None, self._damaged[result.stage])
