"""The drift DAG of all clusters: it compares and reports, and never writes to a cluster."""

import logging
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from airflow.sdk import DAG, TriggerRule, get_current_context, task

from quota_ops.airflow.assets import DRIFTED, Event, emit_drifted, has_drift, make_event
from quota_ops.airflow.errors import is_retryable, log_errors
from quota_ops.airflow.links import add_report_button, find_page_link, offer_link
from quota_ops.airflow.notify import (
    News,
    Notify,
    describe_report,
    make_dag_callback,
    send_notification,
)
from quota_ops.airflow.options import DEFAULT_ARGS, Options, add_callback
from quota_ops.airflow.runs import (
    ClusterFolder,
    find_store,
    name_run,
    open_run,
    start_folder,
    work_on_each,
)
from quota_ops.airflow.spark import SparkDiff
from quota_ops.airflow.tasks import (
    build_dag,
    describe_result,
    emit_gauges,
    is_retry,
    log_text,
    refuse_unless_done,
    run_stage,
)
from quota_ops.model.errors import (
    CannotJudge,
    ClusterTrouble,
    GuardsRefused,
    InvalidInput,
    Unreachable,
)
from quota_ops.model.moment import iso_utc
from quota_ops.model.runs.stages import StageStatus
from quota_ops.model.text import counted

if TYPE_CHECKING:
    from quota_ops.model.history.history import FleetHistory
    from quota_ops.model.runs.report import Report
    from quota_ops.store.places.run_store import RunStore

_log = logging.getLogger(__name__)
ABOUT = """\
Reports the differences between Git and the clusters. It never writes to a cluster or a ledger.

describe reads every cluster, eight at the same time; a retry reads those that are missing. diff
compares all that responded in one Spark job. report writes a page for each cluster, and its log has
the link to each. overview writes one page for all; the last line of its log is the link to it.

Drift alone does not fail the run: see the reports. The run fails where a cluster could not be
compared, because its quotas are unknown; all other clusters are reported as usual.
"""
DAG_ID = "drift"
TASKS = ("describe", "diff", "report", "overview")
"""The tasks of the DAG, in order."""


class _Drift(NamedTuple):
    """A cluster with drift, as the task report announces it."""

    event: Event
    news: News


def build_drift_dag(
    clusters: Sequence[ClusterFolder],
    run_store: str | None,
    schedule: str | None,
    notify: Notify,
    *,
    prefix: str,
    default_args: Mapping[str, Any],
    task_options: Options,
) -> DAG:
    """Build the DAG that reports the drift of each cluster and of all clusters together."""
    every: dict[str, Any] = {
        name: {"trigger_rule": TriggerRule.ALL_DONE, **task_options.get(name, {})} for name in TASKS
    }
    missed = make_dag_callback(DAG_ID, run_store, notify)
    every["describe"]["trigger_rule"] = TriggerRule.ALL_SUCCESS
    every["overview"] |= add_callback(default_args, "on_failure_callback", missed)
    with build_dag(
        prefix + DAG_ID,
        description="Reports the differences between Git and the clusters; writes to no cluster",
        doc_md=ABOUT,
        crons=[schedule] if schedule else [],
        subject=DAG_ID,
        notify=notify,
        tags={"quota-ops"},
        default_args={**DEFAULT_ARGS, **default_args},
    ) as dag:
        described = describe.override(**every["describe"])(clusters, run_store)
        diff = SparkDiff(task_id="diff", clusters=clusters, run_store=run_store, **every["diff"])
        reported = _make_report_task(notify).override(**every["report"])(clusters, run_store)
        last = overview.override(**every["overview"])(clusters, run_store)
        add_report_button(last)
        described >> diff >> reported >> last
    return dag


@task
@log_errors()
def describe(clusters: Sequence[ClusterFolder], run_store: str | None) -> str:
    """Read the YAML and the stored quotas of each cluster, then fail if any could not be described.

    A retry reads only the clusters that were not described before.
    """
    describe_one = partial(_describe, run_store=run_store, is_retry=is_retry())
    _, errors = work_on_each(clusters, describe_one)
    if errors:
        kind = Unreachable if any(map(is_retryable, errors.values())) else ClusterTrouble
        raise kind(
            f"{len(errors):,} of {counted(len(clusters), 'cluster')} could not be described: "
            f"{', '.join(errors)}",
            "Their errors are above; all other clusters are compared and reported.",
        )
    return f"{counted(len(clusters), 'cluster')} described."


def _describe(cluster: ClusterFolder, *, run_store: str | None, is_retry: bool) -> None:
    if is_retry:
        earlier = start_folder(cluster, run_store).stage_result("describe")
        if earlier.status is StageStatus.DONE:
            return
    with open_run(cluster, run_store, reads_files=True) as run:
        run_stage(run, "check")
        run_stage(run, "describe")
    _log.info("%s", describe_result("describe", run.folder))


def _make_report_task(notify: Notify) -> Any:
    """Make the task report; notifiers among its arguments would be stored with the DAG."""

    @task(outlets=[DRIFTED])
    @log_errors()
    def report(clusters: Sequence[ClusterFolder], run_store: str | None) -> str:
        """Write the report of each cluster, even if its comparison failed; announce drift.

        A cluster without a report does not fail this task, which would lose the events of all
        others: overview fails and names it.
        """
        context = get_current_context()
        reported, _ = work_on_each(clusters, partial(_report, run_store=run_store))
        drifts = [drift for drift in reported.values() if drift]
        for drift in drifts:
            emit_drifted(drift.event)
            send_notification(notify, drift.news, context)
        many = f"{len(drifts):,} of {counted(len(clusters), 'cluster')}"
        names = ", ".join(drift.news.cluster for drift in drifts)
        return f"Changes outside Git on {many}{': ' * bool(names)}{names}."

    return report


def _report(cluster: ClusterFolder, *, run_store: str | None) -> _Drift | None:
    """Write the report of a cluster, and return its drift."""
    from quota_ops.report.outline.summary import summarize
    from quota_ops.stages.report.run_report import load_report
    from quota_ops.store.run.files import PAGE

    with open_run(cluster, run_store) as run:
        try:
            if run.folder.stage_result("diff").status is StageStatus.DONE:
                with suppress(GuardsRefused):  # no failure: the report shows the guards
                    run_stage(run, "plan")
        finally:
            run_stage(run, "report")
    link = find_page_link(run.folder.place / PAGE, run.folder.store)
    written = load_report(run.folder)
    _log.info("%s: %s %s", cluster.name, summarize(written).sentence, link)
    emit_gauges(cluster.name, written)
    if not has_drift(written):
        return None
    return _Drift(make_event(written), describe_report("drift", written, link))


@task
@log_errors()
def overview(clusters: Sequence[ClusterFolder], run_store: str | None) -> str:
    """Write one page about all clusters, then fail if any could not be compared."""
    from quota_ops.report.page.fleet import as_html
    from quota_ops.report.screens.fleet import as_text
    from quota_ops.store.places.json_text import json_text
    from quota_ops.store.places.run_store import safe_name
    from quota_ops.store.run.files import ABOUT, PAGE
    from quota_ops.store.run.folder import RunFolder

    read, errors = work_on_each(clusters, partial(read_cluster, run_store=run_store))
    fleet = [
        (
            cluster.name,
            read[cluster.name].report if cluster.name in read else str(errors[cluster.name]),
        )
        for cluster in clusters
    ]
    store = find_store(run_store)
    context = get_current_context()
    dag_id = context["dag"].dag_id
    folder = RunFolder(store.overview(name_run(context)))
    about = {"run": folder.place.name, "started": iso_utc(), "dag_id": dag_id}
    folder.write_json(ABOUT, about)
    links = {
        cluster.name: f"../../runs/{safe_name(cluster.name)}/{folder.place.name}/{PAGE}"
        for cluster in clusters
    }
    text, history = as_text(fleet), read_last_days(store)
    changes = {name: found.changed for name, found in read.items() if found.changed}
    missed = [name for name, report in fleet if isinstance(report, str)]
    for name in missed:  # its task report may have ended before it set the gauge
        emit_gauges(name, None)
    history = history._replace(changes=changes, looks=read_last_looks(store, missed))
    folder.write_text(PAGE, as_html(fleet, links, history, about["started"]))
    folder.write_text("report.txt", text)
    newest = json_text({"run": folder.place.name, "started": about["started"]})
    (store.newest_overviews / safe_name(dag_id)).replace(newest.encode())
    page = find_page_link(folder.place / PAGE, store)
    log_text(text, page)
    offer_link(page)
    if missed:
        raise ClusterTrouble(
            f"{len(missed):,} of {counted(len(fleet), 'cluster')} could not be compared: "
            f"{', '.join(missed)}",
            f"The report of all clusters is {page}",
        )
    refuse_unless_done(page)
    if invalid := [
        f"{name}: {file.text}"
        for name, report in fleet
        if not isinstance(report, str)
        for file in report.invalid
    ]:
        raise CannotJudge("\n".join(invalid), f"The report of all clusters is {page}")
    return page


_LOOK_BACK = timedelta(days=30)


class Found(NamedTuple):
    """The report of a cluster or why it has none, and when a run last wrote its quotas."""

    report: "Report | str"
    changed: str | None = None


def read_cluster(cluster: ClusterFolder, run_store: str | None) -> Found:
    """Return the report of a cluster, or why it has none or could not be compared."""
    from quota_ops.model.quotas.tables import LEDGER
    from quota_ops.stages.report.run_report import read_report

    folder = start_folder(cluster, run_store)
    for stage in ("check", "describe", "diff", "plan", "report"):
        result = folder.stage_result(stage)
        if result.status not in {StageStatus.DONE, StageStatus.REFUSED}:
            return Found(": ".join(filter(None, (f"{stage} {result.status}", result.message))))
    changed = max(folder.read_table(LEDGER)["at"].to_pylist(), default=None)
    return Found(read_report(folder), changed)


def read_last_days(store: "RunStore") -> "FleetHistory":
    """Return the history of the last 30 days; empty, with a warning, if it cannot be read."""
    from quota_ops.model.history.history import FleetHistory
    from quota_ops.sql.history import read_fleet_history

    try:
        return read_fleet_history(store, f"{datetime.now(UTC) - _LOOK_BACK:%Y-%m-%d}")
    except InvalidInput as error:
        _log.warning("the overview has no history: %s", error)
        return FleetHistory()


def read_last_looks(store: "RunStore", clusters: Iterable[str]) -> Mapping[str, str]:
    """Return when a run last compared each of these clusters; without those that none compared.

    Empty, with a warning, if the run store cannot be listed.
    """
    from quota_ops.store.run.newest_reports import read_newest_reports

    try:
        reports = read_newest_reports(store, clusters, compared=True)
    except InvalidInput as error:
        _log.warning("the overview does not know when a run last compared a cluster: %s", error)
        return {}
    return {
        name: report.get("looked") or report["finished"]
        for name, report in reports.items()
        if report
    }
