"""Builds a report from a run's artifacts; it omits missing ones and reports damaged ones."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from typing import Any, TypeVar

from msgspec.structs import asdict, replace

from quota_ops.model.code_host import Repository
from quota_ops.model.errors import InvalidInput
from quota_ops.model.moment import iso_utc
from quota_ops.model.plans.capacity import Promises, sum_promises
from quota_ops.model.plans.policy import Policy
from quota_ops.model.quotas.rows import DesiredRow, Key, Side
from quota_ops.model.quotas.tables import DESIRED, DIFFERENCES, HOLDS, LEDGER, OVERRIDES
from quota_ops.model.runs.report import Record, Report
from quota_ops.model.runs.run import Checked, Described, Verification
from quota_ops.model.runs.stages import DIED, STAGES, StageResult, StageStatus
from quota_ops.model.runs.verification import RowVerdict
from quota_ops.stages.plan import assemble_plan
from quota_ops.stages.plan.earlier_runs import read_owner_changes
from quota_ops.stages.plan.effects import read_effects
from quota_ops.stages.plan.origins import read_origins
from quota_ops.stages.report.command_report import read_record
from quota_ops.store.run import files
from quota_ops.store.run.claim import is_at_work
from quota_ops.store.run.folder import RunFolder
from quota_ops.store.run.state import RunState

Part = TypeVar("Part")

_RECORDED = ("adopt", "release")
"""The stages of commands without a plan, in addition to the eight."""

_SETTLED = "The next run that writes to this cluster settles the writes that it sent."


def read_report(folder: RunFolder, versions: tuple[tuple[str, str], ...] = ()) -> Report:
    """Return the report of a run's artifacts so far; `versions` are the program versions.

    A stage whose artifact cannot be read is reported as failed, even if it recorded success.
    """
    parts = _Parts(folder)
    policy = parts.find(files.POLICY)
    record, plan = parts.read_record(), None
    if record is None:
        plan = parts.read(files.PLAN, folder.plan)
        if not any(folder.has(file) for file in (files.PLAN, files.VERIFICATION)):
            plan = parts.read(DIFFERENCES.file, lambda: assemble_plan(folder))
    results = map(parts.stage, (*STAGES[:-1], *_RECORDED))
    stages = tuple(
        result
        for result in results
        if result.stage in STAGES or result.status is not StageStatus.NOT_RUN
    )
    ended, verification, applied = not parts.is_writing, parts.verification, parts.outcomes
    if not ended or (verification and verification.earlier):
        verification = None  # what later stages left is from an earlier attempt
    verification = verification or Verification()
    return Report(
        **asdict(folder.about()),
        finished=read_end_time(folder),
        stages=tuple(map(parts.mark_damaged, stages)) if ended else _drop_after_apply(stages),
        plan=plan,
        validated=parts.read_outcomes(files.VALIDATED),
        applied=applied,
        checked=parts.find(files.CHECKED) or Checked(),
        described=parts.find(files.DESCRIBED) or Described(),
        verification=verification,
        versions=versions,
        writes=bool(applied) or folder.has(files.APPLIED),
        facts=parts.find(files.FACTS),
        audit=audited.failure if (audited := parts.find(files.AUDITED)) else None,
        metadata=parts.find(files.METADATA),
        rollback=parts.read(files.ROLLBACK, partial(folder.read, files.ROLLBACK), stage="diff"),
        decisions=parts.read(files.APPROVAL, folder.decisions, stage="apply") or (),
        findings=parts.read(files.FINDINGS, folder.findings) or (),
        declared=parts.read(DESIRED.file, lambda: _read_desired(folder, verification.verdicts))
        or {},
        origins=parts.read(files.ORIGINS, lambda: read_origins(folder)) or {},
        overrides=parts.read(OVERRIDES.file, folder.overrides),
        protected=parts.read(OVERRIDES.file, lambda: folder.overrides(Side.PROTECTED)) or (),
        leaving=parts.read(OVERRIDES.file, lambda: folder.overrides(Side.LEAVING)) or (),
        effects=parts.read(files.EFFECTS, lambda: read_effects(folder)) or {},
        clients=parts.find(files.CLIENT_COUNTS),
        throttling=parts.find(files.THROTTLING),
        held=() if plan else parts.read(HOLDS.file, lambda: tuple(folder.read_rows(HOLDS))) or (),
        past=parts.find(files.PAST),
        life=parts.life,
        owner_changes=parts.read(LEDGER.file, partial(read_owner_changes, folder), stage="plan")
        or (),
        record=record,
        repository=_find_repository(policy),
        changes=parts.find(files.CHANGES),
        looked=_find_last(
            folder, [files.STAGE.of("verify") if verification.brokers else files.DESCRIBED]
        ),
        use=parts.find(files.USE),
        throttled=parts.find(files.THROTTLED),
        promises=parts.read(DESIRED.file, lambda: _read_promises(folder, policy)) or (),
    )


def _read_promises(folder: RunFolder, policy: Policy | None) -> tuple[Promises, ...]:
    """Return what Git promises on each broker; empty if there is no capacity, or for other runs."""
    if policy is None or policy.capacity is None or not folder.has(files.CHECKED):
        return ()
    return sum_promises(policy.capacity, folder.read_rows(DESIRED), folder.find(files.FACTS))


def _find_repository(policy: Policy | None) -> Repository | None:
    """Return the repository that a policy names; None if it names none, or the file is damaged."""
    with suppress(ValueError):
        return Repository.parse(policy.repository) if policy and policy.repository else None
    return None


def read_end_time(folder: RunFolder) -> str:
    """Return when the last stage before the report ended: ISO 8601, UTC; else the run's start.

    The report can be written again later.
    """
    return (
        _find_last(folder, map(files.STAGE.of, (*STAGES[:-1], *_RECORDED)))
        or folder.about().started
    )


def _find_last(folder: RunFolder, artifacts: Iterable[files.RunFile[Any]]) -> str | None:
    """Return the last time in some files; those that are damaged do not count."""
    times: list[str] = []
    for file in artifacts:
        with suppress(InvalidInput, ValueError):  # read_report reports damage
            if found := folder.find(file):
                times.append(iso_utc(datetime.fromisoformat(found.at).astimezone(UTC)))
    return max(times, default=None)


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


class _Parts(RunState):
    """Reads the artifacts of a run, and records which stages have a damaged one."""

    def __init__(self, folder: RunFolder) -> None:
        super().__init__(folder)
        self._damaged: dict[str, str] = {}

    def read(self, name: str, read: Callable[[], Part], *, stage: str | None = None) -> Part | None:
        """Read an artifact; None when it is missing or damaged, which fails its `stage`."""
        try:
            return super().read(name, read)
        except InvalidInput as error:
            file = files.find_run_file(name)
            self._damaged[stage or (file.stage if file else "")] = error.message
            return None

    def read_record(self) -> Record | None:
        """Read the result of a run without a plan; None for any other run, or a damaged one."""
        try:
            return read_record(self.folder)
        except (InvalidInput, AttributeError, TypeError):  # `show` reports the artifact
            return None

    def stage(self, name: str) -> StageResult:
        """Return the result of a stage, marked as failed if an artifact of it was damaged."""
        result = self.read(
            files.STAGE.of(name), partial(self.folder.stage_result, name), stage=name
        ) or StageResult(name, StageStatus.NOT_RUN)
        if result.status is StageStatus.NOT_ENDED:
            message = "it is running" if is_at_work(self.folder) else f"{DIED}. {_SETTLED}"
            result = replace(result, message=message)
        return self.mark_damaged(result)

    def mark_damaged(self, result: StageResult) -> StageResult:
        """Return a stage's result, or a failed one when an artifact of the stage was damaged."""
        if result.stage not in self._damaged:
            return result
        return StageResult(result.stage, StageStatus.FAILED, None, self._damaged[result.stage])
