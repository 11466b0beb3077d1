"""report: all that a run left, laid out for people; written also when a stage before it failed."""

from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from platform import python_version

from quota_ops.model.errors import InvalidInput
from quota_ops.model.plan import Plan
from quota_ops.model.report import STAGES, Report
from quota_ops.report.data import as_json
from quota_ops.report.markdown import as_markdown
from quota_ops.report.page import as_html
from quota_ops.report.text import as_text
from quota_ops.run_folder import APPLIED, PLAN, POLICY, VALIDATED, VERIFIED, RunFolder
from quota_ops.run_json import outcomes_from_json, plan_from_json, verification_from_json

PAGES = {
    "report.json": as_json,
    "report.md": as_markdown,
    "report.txt": as_text,
    "report.html": as_html,
}


def run(folder: RunFolder) -> Report:
    """Leave report.json, .md, .txt and .html, whatever the run came to."""
    with folder.stage("report"):
        report = read_report(folder)
        for name, lay_out in PAGES.items():
            folder.write_text(name, lay_out(report))
        return report


def read_report(folder: RunFolder) -> Report:
    """What a run's artefacts say; parts that are missing or damaged are left out, never made up."""
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
        versions=_versions(),
        writes=folder.has(APPLIED),
    )


def _plan(folder: RunFolder) -> Plan | None:
    if not folder.has(PLAN):
        return None
    try:
        return plan_from_json(folder.read_json(PLAN))[0]
    except (InvalidInput, KeyError, TypeError, ValueError):
        return None


def _outcomes(folder: RunFolder, name: str) -> tuple:
    return outcomes_from_json(folder.read_json(name)) if folder.has(name) else ()


def _versions() -> tuple[tuple[str, str], ...]:
    found = [("python", python_version())]
    for package in ("quota-ops", "kafka-python", "confluent-kafka", "duckdb", "pyspark"):
        try:
            found.append((package, version(package)))
        except PackageNotFoundError:
            continue
    return tuple(found)
