"""Builds a report from a run's artifacts; it omits missing ones and reports damaged ones."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from msgspec.structs import asdict, replace

from quota_ops.model.clusters.cluster_facts import ClusterFacts
from quota_ops.model.code_host import Repository
from quota_ops.model.errors import InvalidInput
from quota_ops.model.moment import iso_utc
from quota_ops.model.plans.capacity import Promises, sum_promises
from quota_ops.model.plans.policy import Policy
from quota_ops.model.quotas.rows import DesiredRow, Key, Keys, Side
from quota_ops.model.quotas.tables import DESIRED, DIFFERENCES, HOLDS, LEDGER, OVERRIDES
from quota_ops.model.runs.report import Record, Report
from quota_ops.model.runs.run import Checked, Described, Verification
from quota_ops.model.runs.stages import DIED, STAGES, StageResult, StageStatus
from quota_ops.stages.plan import assemble_plan
from quota_ops.stages.plan.earlier_runs import read_owner_changes
from quota_ops.stages.plan.effects import read_effects
from quota_ops.stages.plan.origins import read_origins
from quota_ops.stages.report.command_report import read_record
from quota_ops.store.run import files
from quota_ops.store.run.claim import is_at_work
from quota_ops.store.run.folder import RunFolder
from quota_ops.store.run.state import RunState

_RECORDED = ("adopt", "release")
"""The stages of commands without a plan, in addition to the eight."""

_READ_FOR: dict[str, str] = {
    files.ROLLBACK: "diff",
    LEDGER.file: "plan",
    files.APPROVAL: "apply",
    **{files.STAGE.of(stage): stage for stage in (*STAGES, *_RECORDED)},
}
"""The stages that fail if a file is damaged which another stage writes."""

_SETTLED = "The next run that writes to this cluster settles the writes that it sent."


def load_report(folder: RunFolder) -> Report:
    """Return the report that this process has made of a run, or else one of its artifacts."""
    return folder.read_cached(files.REPORT, lambda: read_report(folder))


def read_report(folder: RunFolder, versions: tuple[tuple[str, str], ...] = ()) -> Report:
    """Return the report of a run's artifacts so far; `versions` are the program versions.

    A stage whose artifact cannot be read is reported as failed, even if it recorded success.
    """
    damaged: dict[str, str] = {}

    def fail_stage(name: str, damage: InvalidInput) -> None:
        file = files.find_run_file(name)
        damaged[_READ_FOR.get(name) or (file.stage if file else "")] = damage.message

    run = RunState(folder, fail_stage)
    report = _add_writes(run, _add_plan(run, _read_inputs(run, versions)))
    return replace(report, stages=tuple(_list_stages(run, damaged)))


def _read_inputs(run: RunState, versions: tuple[tuple[str, str], ...]) -> Report:
    """Return a report of what check and describe read, or of a command without a plan of Git."""
    folder, facts, policy = run.folder, run.find(files.FACTS), run.find(files.POLICY)
    return Report(
        **asdict(folder.about()),
        finished=read_end_time(folder),
        versions=versions,
        record=_read_record(folder),
        rollback=run.find(files.ROLLBACK),
        repository=_find_repository(policy),
        checked=run.find(files.CHECKED) or Checked(),
        changes=run.find(files.CHANGES),
        described=run.find(files.DESCRIBED) or Described(),
        facts=facts,
        metadata=run.find(files.METADATA),
        promises=run.read(DESIRED.file, lambda: _read_promises(folder, policy, facts)) or (),
    )


def _add_plan(run: RunState, report: Report) -> Report:
    """Add what diff and plan found, and the decisions about the plan."""
    folder, plan = run.folder, None
    if report.record is None:
        plan = run.read(files.PLAN, folder.plan)
        if not any(folder.has(file) for file in (files.PLAN, files.VERIFICATION)):
            plan = run.read(DIFFERENCES.file, lambda: assemble_plan(folder))
    return replace(
        report,
        plan=plan,
        held=() if plan else run.read(HOLDS.file, lambda: tuple(folder.read_rows(HOLDS))) or (),
        owner_changes=run.read(LEDGER.file, lambda: read_owner_changes(folder)) or (),
        overrides=run.read(OVERRIDES.file, folder.overrides),
        protected=run.read(OVERRIDES.file, lambda: folder.overrides(Side.PROTECTED)) or (),
        leaving=run.read(OVERRIDES.file, lambda: folder.overrides(Side.LEAVING)) or (),
        findings=run.read(files.FINDINGS, folder.findings) or (),
        origins=run.read(files.ORIGINS, lambda: read_origins(folder)) or {},
        effects=run.read(files.EFFECTS, lambda: read_effects(folder)) or {},
        clients=run.find(files.CLIENT_COUNTS),
        throttling=run.find(files.THROTTLING),
        throttled=run.find(files.THROTTLED),
        decisions=run.read(files.APPROVAL, folder.decisions) or (),
    )


def _add_writes(run: RunState, report: Report) -> Report:
    """Add what validate and apply wrote, what verify read back, and what report recorded."""
    folder, applied, verification = run.folder, run.outcomes, run.read_back or Verification()
    wrong = {verdict.id for verdict in verification.verdicts}
    audited = run.find(files.AUDITED)
    return replace(
        report,
        validated=run.read_outcomes(files.VALIDATED),
        applied=applied,
        writes=bool(applied) or folder.has(files.APPLIED),
        life=None if verification.brokers else run.life,
        verification=verification,
        superseded=None if run.read_back else run.verification,
        looked=find_look(run),
        declared=run.read(DESIRED.file, lambda: _read_desired(folder, wrong)) or {},
        past=run.find(files.PAST),
        use=run.find(files.USE),
        audit=audited and audited.failure,
    )


def _read_promises(
    folder: RunFolder, policy: Policy | None, facts: ClusterFacts | None
) -> tuple[Promises, ...]:
    """Return what Git promises on each broker; empty if there is no capacity, or for other runs."""
    if policy is None or policy.capacity is None or not folder.has(files.CHECKED):
        return ()
    return sum_promises(policy.capacity, folder.read_rows(DESIRED), facts)


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


def find_look(run: RunState) -> str | None:
    """Return when verify, or else describe, read the cluster; None if nothing was read."""
    return _find_last(run.folder, [files.VERIFICATION if run.read_back else files.DESCRIBED])


def _find_last(folder: RunFolder, artifacts: Iterable[files.RunFile[Any]]) -> str | None:
    """Return the last time in some files; those that are damaged do not count."""
    times: list[str] = []
    for file in artifacts:
        with suppress(InvalidInput, ValueError):  # read_report reports damage
            if found := folder.find(file):
                times.append(iso_utc(datetime.fromisoformat(found.at).astimezone(UTC)))
    return max(times, default=None)


def _list_stages(run: RunState, damaged: Mapping[str, str]) -> Iterator[StageResult]:
    """Yield how each stage ended: those in `damaged` failed, with the message there."""
    for name in (*STAGES[:-1], *_RECORDED):
        stage = run.stage(name)
        if stage.status is StageStatus.NOT_ENDED:
            message = "it is running" if is_at_work(run.folder) else f"{DIED}. {_SETTLED}"
            stage = replace(stage, message=message)
        elif run.is_writing and not run.read_back and name == "verify":  # of an earlier attempt
            stage = StageResult(name, StageStatus.NOT_RUN)
        elif name in damaged:
            stage = StageResult(name, StageStatus.FAILED, None, damaged[name])
        if name in STAGES or stage.status is not StageStatus.NOT_RUN:
            yield stage


def _read_desired(folder: RunFolder, keys: Keys) -> dict[Key, DesiredRow]:
    """Return the desired rows of some keys."""
    rows = folder.read_rows(DESIRED) if keys else ()
    return {row.id: row for row in rows if row.id in keys}


def _read_record(folder: RunFolder) -> Record | None:
    """Read the result of a run without a plan of Git; None for others, or a damaged one."""
    try:
        return read_record(folder)
    except (InvalidInput, AttributeError, TypeError):  # `show` reports the artifact
        return None
