"""Builds a report from a run's artifacts; it omits missing ones and reports damaged ones."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, TypeVar

from quota_ops.model.code_host import Repository
from quota_ops.model.errors import InvalidInput
from quota_ops.model.moment import iso_utc
from quota_ops.model.outcome import Outcome
from quota_ops.model.policy import Policy
from quota_ops.model.quota import PROTECTED
from quota_ops.model.report import (
    STAGES,
    Life,
    Record,
    Report,
    StageResult,
    StageStatus,
    has_not_ended,
)
from quota_ops.model.rows import DesiredRow, Key
from quota_ops.model.run import Outcomes, Verification
from quota_ops.model.tables import BATCHES, DESIRED, DIFFERENCES, HOLDS, LEDGER, OVERRIDES
from quota_ops.model.verification import RowVerdict
from quota_ops.stages.plan import assemble_plan
from quota_ops.stages.plan.earlier_runs import read_owner_changes
from quota_ops.stages.plan.effects import read_effects
from quota_ops.stages.report.command_report import read_record
from quota_ops.stages.verify.record import compute_applied_digest
from quota_ops.store.attempt import outcomes_so_far
from quota_ops.store.origins import read_origins
from quota_ops.store.place import Place
from quota_ops.store.run_files import (
    APPLIED,
    APPROVAL,
    AUDITED,
    CLIENT_COUNTS,
    DESCRIBED,
    EFFECTS,
    FACTS,
    FINDINGS,
    METADATA,
    ORIGINS,
    PAST,
    PLAN,
    POLICY,
    ROLLBACK,
    STAGE,
    VALIDATED,
    VERIFICATION,
    RunFile,
)
from quota_ops.store.run_folder import RunFolder
from quota_ops.store.run_marks import find_liveness, format_deadline

Part = TypeVar("Part")

_RECORDED = ("adopt", "release")
"""The stages of commands without a plan, in addition to the eight."""

_SETTLED = "next run that writes to this cluster settles the writes that it sent."


def read_report(folder: RunFolder, versions: tuple[tuple[str, str], ...] = ()) -> Report:
    """Return the report of a run's artifacts so far; `versions` are the program versions.

    A stage whose artifact cannot be read is reported as failed, even if it recorded success.
    """
    about = folder.about()
    parts = _Parts(folder)
    policy = parts.read_file("check", POLICY)
    described = parts.read_file("describe", DESCRIBED)
    plan = parts.read("plan", PLAN, lambda: folder.plan()[0])
    if plan is None and not (folder.has(PLAN) or folder.has(VERIFICATION)):
        plan = parts.read("diff", DIFFERENCES.file, lambda: assemble_plan(folder))
    verification = parts.read(
        "verify",
        VERIFICATION,
        lambda: _read_verification(folder),
    )
    stages = tuple(parts.read_stage(stage) for stage in STAGES[:-1])
    validated, applied = (
        parts.read_outcomes("validate", VALIDATED),
        parts.read_outcomes("apply", APPLIED),
    )
    ended = not has_not_ended(stages)
    if not ended:  # artifacts of later stages are from an earlier attempt
        verification = None
        applied = parts.read("apply", BATCHES.file, lambda: outcomes_so_far(folder)) or applied
    brokers, verdicts = (verification.brokers, verification.verdicts) if verification else ((), ())
    return Report(
        cluster=about.cluster,
        cluster_id=policy.cluster_id if policy else None,
        run=about.run,
        provenance=about.provenance,
        started=about.started,
        finished=iso_utc(),
        stages=tuple(map(parts.mark_damaged, stages)) if ended else _drop_after_apply(stages),
        plan=plan,
        validated=validated,
        applied=applied,
        brokers=brokers,
        verdicts=verdicts,
        verified=verification.verified if verification else 0,
        versions=versions,
        writes=bool(applied) or folder.has(APPLIED),
        facts=parts.read_file("describe", FACTS),
        audit=audited.failure if (audited := parts.read_file("report", AUDITED)) else None,
        metadata=parts.read_file("describe", METADATA),
        rollback=parts.read_file("diff", ROLLBACK),
        decisions=parts.read("apply", APPROVAL, folder.decisions) or (),
        findings=parts.read("plan", FINDINGS, folder.findings) or (),
        declared=parts.read("check", DESIRED.file, lambda: _read_desired(folder, verdicts)) or {},
        origins=parts.read("plan", ORIGINS, lambda: read_origins(folder)) or {},
        overrides=parts.read("diff", OVERRIDES.file, folder.overrides),
        has_protected=parts.read("diff", DIFFERENCES.file, lambda: _has_protected(folder)) or False,
        effects=parts.read("plan", EFFECTS, lambda: read_effects(folder)) or {},
        clients=parts.read_file("plan", CLIENT_COUNTS),
        held=()
        if plan
        else parts.read("describe", HOLDS.file, lambda: tuple(folder.read_rows(HOLDS))) or (),
        clock_lead=described.clock_lead if described else 0.0,
        past=parts.read_file("report", PAST),
        life=None if ended else find_liveness(folder.place),
        owner_changes=parts.read("plan", LEDGER.file, lambda: read_owner_changes(folder)) or (),
        record=parts.read_record(),
        repository=_find_repository(policy),
        path=about.path,
        looked=_find_last(folder, [STAGE.of("verify") if brokers else DESCRIBED]),
    )


def _has_protected(folder: RunFolder) -> bool:
    return any(row.hands_off == PROTECTED and row.after is None for row in folder.differences())


def _find_repository(policy: Policy | None) -> Repository | None:
    """Return the repository that a policy names; None if it names none, or the file is damaged."""
    with suppress(ValueError):
        return Repository.parse(policy.repository) if policy and policy.repository else None
    return None


def read_end_time(folder: RunFolder) -> str:
    """Return when the last stage of a run ended, as ISO 8601 in UTC.

    Returns the start of the run when no stage recorded an end.
    """
    return max(_find_last(folder, [STAGE.of("report")]) or "", read_work_end(folder))


def read_work_end(folder: RunFolder) -> str:
    """Return the same without the report, which can be written again later."""
    return _find_last(folder, map(STAGE.of, (*STAGES[:-1], *_RECORDED))) or folder.about().started


def _find_last(folder: RunFolder, files: Iterable[RunFile[Any]]) -> str | None:
    """Return the last time in some files; those that are damaged do not count."""
    times: list[str] = []
    for file in files:
        with suppress(InvalidInput, ValueError):  # read_report reports damage
            if found := folder.find(file):
                times.append(iso_utc(datetime.fromisoformat(found.at).astimezone(UTC)))
    return max(times, default=None)


def _read_verification(folder: RunFolder) -> Verification | None:
    """Return the result of the last verify; None if it failed, or apply has run again since."""
    found = folder.read(VERIFICATION)
    is_current = found.applied in {None, compute_applied_digest(folder)}
    return found if is_current and not found.earlier else None


def _drop_after_apply(stages: tuple[StageResult, ...]) -> tuple[StageResult, ...]:
    after = STAGES[STAGES.index("apply") + 1 :]
    return tuple(
        StageResult(stage.stage, StageStatus.NOT_RUN) if stage.stage in after else stage
        for stage in stages
    )


def _read_desired(folder: RunFolder, verdicts: Sequence[RowVerdict]) -> dict[Key, DesiredRow]:
    """Return the desired rows of the keys that are not verified."""
    wrong = {verdict.id for verdict in verdicts}
    rows = folder.read_rows(DESIRED) if wrong else ()
    return {row.id: row for row in rows if row.id in wrong}


class _Parts:
    """Reads the artifacts of a run, and records which stages have a damaged one."""

    def __init__(self, folder: RunFolder) -> None:
        self._folder = folder
        self._damaged: dict[str, str] = {}

    def read(self, stage: str, name: str, read: Callable[[], Part]) -> Part | None:
        """Read one artifact of a stage; None when it is missing or damaged."""
        if not self._folder.has(name):
            return None
        try:
            return read()
        except InvalidInput as error:
            self._damaged[stage] = error.message
            return None

    def read_file(self, stage: str, file: RunFile[Part]) -> Part | None:
        """Read a file of a stage; None when it is missing or damaged."""
        return self.read(stage, file, lambda: self._folder.read(file))

    def read_record(self) -> Record | None:
        """Read the result of a run without a plan; None for any other run, or a damaged one."""
        try:
            return read_record(self._folder)
        except (InvalidInput, AttributeError, TypeError):  # `show` reports the artifact
            return None

    def read_outcomes(self, stage: str, name: RunFile[Outcomes]) -> tuple[Outcome, ...]:
        """Read the outcomes of a stage; empty when they are missing or damaged."""
        return self.read(stage, name, lambda: self._folder.outcomes(name)) or ()

    def read_stage(self, stage: str) -> StageResult:
        """Return the result of a stage, marked as failed if an artifact of it was damaged."""
        result = self.read(stage, STAGE.of(stage), lambda: self._folder.stage_result(stage))
        result = result or StageResult(stage, StageStatus.NOT_RUN)
        if result.status is StageStatus.NOT_ENDED:
            result = result._replace(message=_explain_open_end(self._folder.place))
        return self.mark_damaged(result)

    def mark_damaged(self, result: StageResult) -> StageResult:
        """Return a stage's result, or a failed one when an artifact of the stage was damaged."""
        if result.stage not in self._damaged:
            return result
        return StageResult(result.stage, StageStatus.FAILED, None, self._damaged[result.stage])


def _explain_open_end(run: Place) -> str:
    """Return the status of a stage that has not recorded its end."""
    match find_liveness(run):
        case Life.RUNNING:
            return "it is running"
        case Life.GONE:
            return f"it ended without recording how. The {_SETTLED}"
    deadline = format_deadline(run)
    since = f"From {deadline} on, the" if deadline else "The"
    return f"it is running, or ended without recording how. {since} {_SETTLED}"
