"""Builds a report from a run's artifacts; it omits missing ones and reports damaged ones."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from typing import Any, TypeVar

from quota_ops.model.code_host import Repository
from quota_ops.model.errors import InvalidInput
from quota_ops.model.ledger_edits import VERIFIED
from quota_ops.model.moment import iso_utc
from quota_ops.model.outcome import Outcome
from quota_ops.model.owners import OwnerChange, list_owner_changes
from quota_ops.model.past import Past
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
from quota_ops.model.rollback import Rollback
from quota_ops.model.rows import DesiredRow, Key
from quota_ops.model.tables import BATCHES, DESIRED, DIFFERENCES, HOLDS, LEDGER, OVERRIDES
from quota_ops.model.verification import BrokerResult, RowVerdict
from quota_ops.sql.client_effects import SUMMARY, read_client_effects
from quota_ops.stages.plan import assemble_plan
from quota_ops.stages.plan.effects import EFFECTS, read_effects
from quota_ops.stages.report.command_report import read_record
from quota_ops.stages.verify.record import compute_applied_digest
from quota_ops.store.attempt import outcomes_so_far
from quota_ops.store.origins import ORIGINS, read_origins
from quota_ops.store.parquet import to_values
from quota_ops.store.place import Place
from quota_ops.store.run_folder import (
    APPLIED,
    APPROVAL,
    AUDITED,
    DESCRIBED,
    FACTS,
    FINDINGS,
    METADATA,
    PLAN,
    POLICY,
    REPORT,
    ROLLBACK,
    VALIDATED,
    VERIFICATION,
    RunFolder,
    stage_file,
)
from quota_ops.store.run_json import typed, verification_from_json
from quota_ops.store.run_marks import find_liveness, format_deadline

Part = TypeVar("Part")

PAST = "past.json"
"""The artifact with what happened before the run."""
_OWNED = ("entity", "key", "owner")
_RECORDED = ("adopt", "release")
"""The stages of commands without a plan, in addition to the eight."""

_SETTLED = "next run that writes to this cluster settles the writes that it sent."


def read_report(folder: RunFolder, versions: tuple[tuple[str, str], ...] = ()) -> Report:
    """Return the report of a run's artifacts so far; `versions` are the program versions.

    A stage whose artifact cannot be read is reported as failed, even if it recorded success.
    """
    about = folder.about()
    parts = _Parts(folder)
    policy = parts.read("check", POLICY, folder.policy)
    plan = parts.read("plan", PLAN, lambda: folder.plan()[0])
    if plan is None and not (folder.has(PLAN) or folder.has(VERIFICATION)):
        plan = parts.read("diff", DIFFERENCES.file, lambda: assemble_plan(folder))
    verification = parts.read(
        "verify",
        VERIFICATION,
        lambda: folder.read_as(VERIFICATION, partial(_parse_verification, folder)),
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
    brokers, verdicts, verified = verification or ((), (), 0)
    return Report(
        cluster=about["cluster"],
        cluster_id=policy.cluster_id if policy else None,
        run=about["run"],
        provenance=about["provenance"],
        started=about["started"],
        finished=iso_utc(),
        stages=tuple(map(parts.mark_damaged, stages)) if ended else _drop_after_apply(stages),
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
        declared=parts.read("check", DESIRED.file, lambda: _read_desired(folder, verdicts)) or {},
        origins=parts.read("plan", ORIGINS, lambda: read_origins(folder)) or {},
        overrides=parts.read("diff", OVERRIDES.file, folder.overrides),
        has_protected=parts.read("diff", DIFFERENCES.file, lambda: _has_protected(folder)) or False,
        effects=parts.read("plan", EFFECTS, lambda: read_effects(folder)) or {},
        clients=parts.read("plan", SUMMARY, lambda: read_client_effects(folder)),
        held=()
        if plan
        else parts.read("describe", HOLDS.file, lambda: tuple(folder.read_rows(HOLDS))) or (),
        clock_lead=parts.read("describe", DESCRIBED, lambda: folder.read_as(DESCRIBED, _parse_lead))
        or 0.0,
        past=parts.read("report", PAST, lambda: folder.read_as(PAST, Past.from_json)),
        life=None if ended else find_liveness(folder.place),
        owner_changes=parts.read("plan", LEDGER.file, lambda: _read_owner_changes(folder)) or (),
        record=parts.read_record(),
        repository=_find_repository(policy),
        path=about["path"],
        looked=_find_last(folder, {stage_file("verify"): "at"} if brokers else {DESCRIBED: "at"}),
    )


def _has_protected(folder: RunFolder) -> bool:
    return any(row.hands_off == PROTECTED and row.after is None for row in folder.differences())


def _read_owner_changes(folder: RunFolder) -> tuple[OwnerChange, ...]:
    if folder.has(ROLLBACK) or not folder.has(DESIRED.file):
        return ()
    ledger, desired = folder.read_table(LEDGER), folder.read_table(DESIRED)
    known = zip(*(to_values(ledger[name]) for name in (*_OWNED, "state", "value")), strict=True)
    managed = (row for *row, state, value in known if state == VERIFIED and value is not None)
    return list_owner_changes(
        managed, zip(*(to_values(desired[name]) for name in _OWNED), strict=True)
    )


def _find_repository(policy: Policy | None) -> Repository | None:
    """Return the repository that a policy names; None if it names none, or the file is damaged."""
    with suppress(ValueError):
        return Repository.parse(policy.repository) if policy and policy.repository else None
    return None


def read_end_time(folder: RunFolder) -> str:
    """Return when the last stage of a run ended, as ISO 8601 in UTC.

    Returns the start of the run when no stage recorded an end, as in runs of earlier versions.
    """
    written = _find_last(folder, {stage_file("report"): "at", REPORT: "finished"})
    return max(written or "", read_work_end(folder))


def read_work_end(folder: RunFolder) -> str:
    """Return the same without the report, which can be written again later."""
    files = {stage_file(stage): "at" for stage in (*STAGES[:-1], *_RECORDED)}
    return _find_last(folder, files) or str(folder.about()["started"])


def _find_last(folder: RunFolder, files: Mapping[str, str]) -> str | None:
    times = [_read_time(folder, name, key) for name, key in files.items() if folder.has(name)]
    return max(filter(None, times), default=None)


def _read_time(folder: RunFolder, name: str, key: str) -> str | None:
    with suppress(InvalidInput, ValueError):  # read_report reports damage
        at = folder.read_as(name, lambda values: typed(values.get(key), str | None), before="rows")
        return iso_utc(datetime.fromisoformat(at).astimezone(UTC)) if at else None
    return None


def _parse_verification(
    folder: RunFolder, kept: Mapping[str, Any]
) -> tuple[tuple[BrokerResult, ...], tuple[RowVerdict, ...], int] | None:
    """Return the result of the last verify; None if it failed, or apply has run again since."""
    is_earlier = kept.get("earlier") or kept.get("applied") not in {
        None,
        compute_applied_digest(folder),
    }
    return None if is_earlier else verification_from_json(kept)


def _parse_lead(kept: Mapping[str, Any]) -> float:
    return float(typed(kept.get("clock_lead", 0.0), float))


def _drop_after_apply(stages: tuple[StageResult, ...]) -> tuple[StageResult, ...]:
    after = STAGES[STAGES.index("apply") + 1 :]
    return tuple(
        StageResult(one.stage, StageStatus.NOT_RUN) if one.stage in after else one for one in stages
    )


def _read_desired(folder: RunFolder, verdicts: Sequence[RowVerdict]) -> dict[Key, DesiredRow]:
    """Return the desired rows of the keys that are not verified."""
    wrong = {one.id for one in verdicts}
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

    def read_record(self) -> Record | None:
        """Read the result of a run without a plan; None for any other run, or a damaged one."""
        try:
            return read_record(self._folder)
        except (InvalidInput, AttributeError, TypeError):  # `show` reports the artifact
            return None

    def read_outcomes(self, stage: str, name: str) -> tuple[Outcome, ...]:
        """Read the outcomes of a stage; empty when they are missing or damaged."""
        return self.read(stage, name, lambda: self._folder.outcomes(name)) or ()

    def read_stage(self, stage: str) -> StageResult:
        """Return the result of a stage, marked as failed if an artifact of it was damaged."""
        result = self.read(stage, stage_file(stage), lambda: self._folder.stage_result(stage))
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
