"""The tasks of the reconcile DAG; each runs stages of its DAG run. Also parts of every DAG."""

import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any, cast

from airflow.sdk import DAG, MultipleCronTriggerTimetable, get_current_context, task
from airflow.sdk.exceptions import AirflowSkipException
from airflow.sdk.observability import stats
from msgspec.structs import replace

from quota_ops.airflow.assets import APPLIED as APPLIED_ALIAS
from quota_ops.airflow.assets import emit_applied
from quota_ops.airflow.errors import NotBegun, log_errors
from quota_ops.airflow.links import find_page_link, offer_link
from quota_ops.airflow.notify import Notify, make_timeout_callback
from quota_ops.airflow.options import explain_pools, log_pools
from quota_ops.airflow.runs import ClusterFolder, open_run
from quota_ops.model.errors import CannotJudge, GuardsRefused, InvalidInput, QuotaOpsError, Refused
from quota_ops.model.plans.guard import Guard, describe_idle_guard
from quota_ops.model.runs.outcome import Status
from quota_ops.model.runs.stages import STAGES, StageStatus
from quota_ops.model.text import clean_text, counted

if TYPE_CHECKING:
    from airflow.sdk import TaskGroup

    from quota_ops.model.runs.report import Report
    from quota_ops.runs.run import Run
    from quota_ops.store.run.folder import RunFolder


@task
@log_errors()
def check(cluster: ClusterFolder, run_store: str | None) -> str:
    """Read the cluster's YAML, list every problem, and return the run folder."""
    log_pools()
    with open_run(cluster, run_store, reads_files=True, must_know_commit=True) as run:
        run_stage(run, "check")
        return str(run.folder.place)


@task
@log_errors()
def describe(cluster: ClusterFolder, run_store: str | None) -> str:
    """Read all quotas that the cluster stores, and their rows in the ledger."""
    with open_run(cluster, run_store) as run:
        run_stage(run, "describe")
        return describe_result("describe", run.folder)


@task
@log_errors()
def diff(cluster: ClusterFolder, run_store: str | None) -> str:
    """Find the differences in this process, without Spark."""
    with open_run(cluster, run_store) as run:
        run_stage(run, "diff")
        return describe_result("diff", run.folder)


@task
@log_errors()
def plan(
    cluster: ClusterFolder,
    run_store: str | None,
    params: dict[str, Any] | None = None,
    dag: Any = None,
) -> str:
    """Make the plan and return its digest, even if a guard blocks it until a person approves."""
    from quota_ops.runs.run import STAGE_FUNCTIONS
    from quota_ops.store.run.files import PLAN
    from quota_ops.store.run.restart import list_attempts

    allow, reason = _read_overrides(params or {})
    allowed = dict.fromkeys(allow, reason)
    with open_run(cluster, run_store, allow=allowed) as run, run.folder.stage("plan"):
        attempts = list_attempts(run.folder) if allow else ()
        is_cleared = any((attempt / PLAN).exists() for attempt in attempts)
        if is_cleared:
            logging.getLogger(__name__).warning("%s", _FIRST)
        unknown = (params or {}).keys() - _PARAMS
        if unknown and {*dag.params} == _PARAMS:  # a DAG of a user may read others from its run
            raise InvalidInput(
                f"the DAG has no param {', '.join(sorted(unknown))}",
                "Trigger it again: its params are allow and reason. Nothing was written.",
            )
        if allow and not reason:
            raise InvalidInput(
                f"the param allow contains {', '.join(allow)}, but the param reason is empty",
                "Trigger the DAG again with a reason: it is recorded. Nothing was written.",
            )
        try:
            STAGE_FUNCTIONS["plan"](replace(run, allow={}) if is_cleared else run)
        except GuardsRefused as refused:
            blocked = run.folder.plan()
            if not (blocked.can_be_approved or blocked.repairs):
                raise Refused(refused.message, f"Nothing was written. {_OVERRIDE}") from None
            logging.getLogger(__name__).warning("%s", refused.message)
        made = run.folder.plan()
        if idle := describe_idle_guard(allow, made.guards, "the param allow contains"):
            logging.getLogger(__name__).warning("%s", idle)
        return made.digest


_PARAMS = {"allow", "reason"}
_FIRST = (
    "the param allow is for the first plan of this run, which was cleared since: another plan "
    "needs an approval, or a new run"
)
_OVERRIDE = (
    "To override the guards, trigger the DAG with their names in the param allow and the reason in "
    "the param reason."
)


def _read_overrides(params: Mapping[str, Any]) -> tuple[list[str], str]:
    """Return the guards to override and the reason; a DAG of a user may have no such params."""
    allow, reason = params.get("allow") or [], params.get("reason") or ""
    known = {guard.value for guard in Guard}
    if not isinstance(allow, list) or not known.issuperset(allow):
        raise InvalidInput(
            f"the param allow is {allow!r}, which is not a list of guards",
            f"The guards are {', '.join(sorted(known))}. Rename the param if it means something "
            "else in this DAG. Nothing was written.",
        )
    return allow, clean_text(str(reason))


@task
@log_errors()
def validate(cluster: ClusterFolder, run_store: str | None) -> str:
    """Check with the broker whether it would accept every change (validate-only)."""
    with open_run(cluster, run_store) as run:
        run_stage(run, "validate")
        return describe_result("validate", run.folder)


@task
@log_errors()
def apply(cluster: ClusterFolder, run_store: str | None, approved: str) -> str:
    """Write the approved plan; a retry after a crash resumes where the last try stopped."""
    from quota_ops.runs.chain import run_stages
    from quota_ops.store.run.files import APPLIED

    if not approved:
        raise Refused("no plan was approved: the task approve returned no digest", "Run it again.")
    with open_run(cluster, run_store, approve=approved) as run:
        run_stages(run, ("apply",))
        if any(outcome.status is Status.WAITING for outcome in run.folder.outcomes(APPLIED)):
            raise Refused("guards block the plan, so only its repairs were written", _OVERRIDE)
        return describe_result("apply", run.folder)


@task(outlets=[APPLIED_ALIAS])
@log_errors()
def verify(cluster: ClusterFolder, run_store: str | None) -> str:
    """Read the changes back from every broker, and record them in the ledger."""
    from quota_ops.store.run.files import APPLIED

    with open_run(cluster, run_store) as run:
        if not run.folder.has(APPLIED):
            raise AirflowSkipException("apply ended before its first write")
        run_stage(run, "verify")
        emit_applied(run.folder)
        return describe_result("verify", run.folder)


@task
@log_errors()
def report(cluster: ClusterFolder, run_store: str | None) -> str:
    """Write the report however the run ended, then fail if a task did, or a file is invalid."""
    from quota_ops.report.text.report import as_text
    from quota_ops.stages.report.run_report import load_report
    from quota_ops.store.run.files import PAGE

    _refuse_unless_begun()
    with open_run(cluster, run_store) as run:
        run_stage(run, "report")
        folder, written = run.folder, load_report(run.folder)
        page = find_page_link(folder.place / PAGE, folder.store)
    log_text(as_text(written), page)
    emit_gauges(cluster.name, written)
    offer_link(page)
    _refuse_marked_tasks(folder, page)
    refuse_unless_done(page)
    if written.invalid:
        raise CannotJudge("\n".join(file.text for file in written.invalid), f"The report: {page}")
    return page


def _refuse_marked_tasks(folder: "RunFolder", page: str) -> None:
    """Raise QuotaOpsError if a task counts as successful in Airflow, but its stage did not succeed.

    A person marked it, or cleared only tasks before it. A plan that guards block is a success too:
    the task approve is next.
    """
    states, group = _read_states(), _find_group()
    marked = [
        name
        for name in STAGES[:-1]
        if states.get(str(group.child_id(name))) == "success"  # type: ignore[no-untyped-call]
        and (status := folder.stage_result(name).status) is not StageStatus.DONE
        and (name, status) != ("plan", StageStatus.REFUSED)
    ]
    if marked:
        raise QuotaOpsError(
            f"successful in Airflow, but not in this run: {', '.join(marked)}",
            "They were marked by hand, or only tasks before them were cleared. Clear the first of "
            f"them, with all after it. The report was written: {page}",
        )


def _refuse_unless_begun() -> None:
    """End this task as skipped or failed if the tasks before the group kept it from running.

    Only this task decides how the group ended, because it is the last one.
    """
    state = _read_states().get(str(_find_group().child_id("check")))  # type: ignore[no-untyped-call]
    if state == "skipped":
        raise AirflowSkipException("a task before this task group was skipped")
    if state == "upstream_failed":
        raise NotBegun(
            "a task before this task group failed, so no task of the group ran",
            "Clear the failed task once its cause is fixed. Nothing was written.",
        )


def refuse_unless_done(page: str) -> None:
    """Raise QuotaOpsError with the names of other tasks that did not succeed.

    They belong to this task's group, or to the DAG run if the task is in no group.
    """
    own = get_current_context()["ti"].task_id
    states = {name: state for name, state in _read_states().items() if name != own}
    unsuccessful = {name: state for name, state in states.items() if state != "success"}
    if unsuccessful:
        failed = [name for name, state in unsuccessful.items() if state == "failed"]
        listed = (f"{name} {unsuccessful[name]}" for name in failed or unsuccessful)
        raise QuotaOpsError(
            f"the run did not succeed: {', '.join(listed)}", f"The report was written: {page}"
        )


def _read_states() -> dict[str, str]:
    """Return the states of all tasks of this task's group in this DAG run, itself included."""
    context = get_current_context()
    ti, run_id, group = context["ti"], context["run_id"], _find_group().group_id
    states = ti.get_task_states(dag_id=ti.dag_id, run_ids=[run_id], task_group_id=group)
    return {name: str(state) for name, state in states[run_id].items()}


def _find_group() -> "TaskGroup":
    """Return the task group of this task; outside all groups, the DAG's own."""
    task: Any = get_current_context()["task"]
    return cast("TaskGroup", task.task_group)


def is_retry() -> bool:
    """Return whether an earlier try of this task failed, and nobody cleared the task since."""
    context: Any = get_current_context()
    ti = context["ti"]
    # Airflow adds the number of retries to max_tries when a task is cleared.
    return bool(ti.try_number > ti.max_tries - context["task"].retries + 1)


def run_stage(run: "Run", stage: str) -> None:
    """Run a stage, and record how it ended."""
    from quota_ops.runs import run as one_run

    one_run.run_stage(run, stage)


LONGEST = timedelta(hours=2)
"""The longest duration of a run, without the time that its plan waits for approval."""


@contextmanager
def build_dag(
    dag_id: str,
    *,
    crons: Sequence[str],
    subject: str,
    notify: Notify,
    longest: timedelta = LONGEST,
    **more: Any,
) -> Iterator[DAG]:
    """Build a DAG that runs once at a time, skips missed runs, and ends a run after `longest`.

    The block adds its tasks; then its documentation names their pools. `crons` are in UTC: Airflow
    reads a plain text in its own time zone. `subject` is the cluster in the notification of a run
    that was ended.
    """
    with DAG(
        dag_id,
        schedule=MultipleCronTriggerTimetable(*crons, timezone="UTC") if crons else None,
        catchup=False,
        max_active_runs=1,
        dagrun_timeout=longest,
        on_failure_callback=make_timeout_callback(subject, notify),
        deadline=notify.get("late"),
        **more,
    ) as dag:
        yield dag
    dag.doc_md = f"{dag.doc_md}{explain_pools(dag)}"


_UNSAFE = re.compile(r"[^A-Za-z0-9_-]+")
_LONGEST_NAME = 80


def emit_gauges(cluster: str, report: "Report | None") -> None:
    """Set the gauges quota_ops.NAME.CLUSTER; nothing happens where Airflow's metrics are off.

    NAME is `compared` (1 or 0), `declared`, or a status of a quota; without a report and its plan,
    only `compared`. CLUSTER is in the name because plain StatsD has no tags; the tag `cluster` has
    it too.
    """
    from quota_ops.report.records.json_report import COUNTED, count_rows

    values = {"compared": 0}
    if report is not None and report.plan is not None:
        counts = count_rows(report)
        values = {"compared": 1, "declared": report.plan.desired}
        values |= {name: counts[name] or 0 for name in COUNTED}
    cluster = _UNSAFE.sub("_", cluster)[:_LONGEST_NAME]
    for name, value in values.items():
        stats.gauge(f"quota_ops.{name}.{cluster}", value, tags={"cluster": cluster})


_log = logging.getLogger(__name__)
MOST_LINES = 200
"""The most lines of a report in a log; the page has them all."""


def describe_result(stage: str, folder: "RunFolder") -> str:
    """Return what a stage that succeeded found or did, as a sentence; Airflow logs it."""
    from quota_ops.model.quotas.tables import ACTUAL
    from quota_ops.report.outline.sentences import describe_validated
    from quota_ops.report.outline.summary import summarize
    from quota_ops.stages.report.run_report import read_report
    from quota_ops.store.run.state import RunState

    if stage == "describe":
        cluster = folder.about().cluster
        return f"{cluster} stores {counted(folder.count(ACTUAL), 'quota')}."
    if stage == "apply":
        state = RunState(folder)
        every = sum(len(outcome.keys) for outcome in state.outcomes)
        return f"{len(state.written):,} of {counted(every, 'change')} written."
    report = read_report(folder)
    return describe_validated(report) if stage == "validate" else summarize(report).sentence


def log_text(text: str, page: str) -> None:
    """Log a report, line by line; where it is too long, the last line has its page."""
    lines = text.rstrip("\n").split("\n")
    for line in lines[:MOST_LINES]:
        _log.info("%s", line)
    if lines[MOST_LINES:]:
        _log.info("… and %s more lines: %s", f"{len(lines) - MOST_LINES:,}", page)
