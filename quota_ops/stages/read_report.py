"""A run's artefacts as a report; parts that are missing or damaged are left out, never made up."""

from datetime import UTC, datetime

from quota_ops.model.errors import InvalidInput
from quota_ops.model.outcome import Outcome
from quota_ops.model.plan import Plan
from quota_ops.model.report import STAGES, Report
from quota_ops.model.tables import ACTUAL, DESIRED, DIFFERENCES
from quota_ops.run_folder import APPLIED, DESCRIBED, PLAN, POLICY, VALIDATED, VERIFIED, RunFolder
from quota_ops.run_json import outcomes_from_json, plan_from_json, verification_from_json


def read_report(folder: RunFolder, versions: tuple[tuple[str, str], ...] = ()) -> Report:
    """What a run has left so far; `versions` are those of the programs that made it."""
    about = folder.about()
    brokers, verdicts, verified = (
        verification_from_json(folder.read_json(VERIFIED)) if folder.has(VERIFIED) else ((), (), 0)
    )
    return Report(
        cluster=about["cluster"],
        cluster_id=folder.policy().cluster_id if folder.has(POLICY) else None,
        run=about["run"],
        commit=about["commit"],
        started=about["started"],
        finished=f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
        stages=tuple(folder.stage_result(stage) for stage in STAGES[:-1]),
        plan=_plan(folder),
        validated=_outcomes(folder, VALIDATED),
        applied=_outcomes(folder, APPLIED),
        brokers=brokers,
        verdicts=verdicts,
        verified=verified,
        versions=versions,
        writes=folder.has(APPLIED),
    )


def _plan(folder: RunFolder) -> Plan | None:
    """The plan; of a run that came only to the diff, its differences unjudged."""
    if not folder.has(PLAN):
        return _unjudged(folder)
    try:
        return plan_from_json(folder.read_json(PLAN))[0]
    except (InvalidInput, KeyError, TypeError, ValueError):
        return None


def _unjudged(folder: RunFolder) -> Plan | None:
    if not folder.has(DIFFERENCES.file):
        return None
    return Plan(
        policy=folder.policy(),
        commit=folder.about()["commit"],
        differences=folder.differences(),
        guards=(),
        desired=folder.count(DESIRED),
        actual=folder.count(ACTUAL),
        batches=len(folder.batches()),
        ledger=folder.read_json(DESCRIBED)["ledger"],
    )


def _outcomes(folder: RunFolder, name: str) -> tuple[Outcome, ...]:
    return outcomes_from_json(folder.read_json(name)) if folder.has(name) else ()
