"""The drift DAG of all clusters: it compares and reports, and never writes to a cluster."""

import logging
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from airflow.sdk import DAG, TriggerRule, get_current_context, task

from quota_ops.airflow.assets import DRIFTED, emit_drifted
from quota_ops.airflow.errors import is_retryable, log_errors
from quota_ops.airflow.links import add_report_button, find_page_link, offer_link
from quota_ops.airflow.notify import Notify, make_drift_callback, make_overview_callback
from quota_ops.airflow.options import DEFAULT_ARGS, Options, add_callback
from quota_ops.airflow.pools import explain_pools
from quota_ops.airflow.runs import ClusterFolder, find_store, name_run, open_run, start_folder
from quota_ops.airflow.spark import SparkDiff
from quota_ops.airflow.tasks import build_dag, is_retry, refuse_unless_done, run_stage
from quota_ops.model.errors import ClusterTrouble, GuardsRefused, QuotaOpsError, Unreachable
from quota_ops.model.moment import iso_utc
from quota_ops.model.report import StageStatus
from quota_ops.model.text import counted

if TYPE_CHECKING:
    from quota_ops.model.report import Report

_log = logging.getLogger(__name__)
ABOUT = """\
Reports the differences between Git and the clusters. It never writes to a cluster or a ledger.

describe reads every cluster, eight at the same time; a retry reads those that are missing. diff
compares all that responded in one Spark job, report writes a page for each cluster, and overview
one page for all; the last line of its log is the link to it.

Drift alone does not fail the run: see the reports. The run fails where a cluster could not be
compared, because its quotas are unknown; all other clusters are reported as usual.
"""
DAG_ID = "drift"
TASKS = ("describe", "diff", "report", "overview")
"""The tasks of the DAG, in order."""
AT_ONCE = 8
"""How many clusters describe reads at the same time: it mostly waits for brokers."""
CLUSTER_NAME = "{{ task.op_kwargs['cluster'].name }}"


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
    drifted = make_drift_callback(run_store, notify)
    missed = make_overview_callback(notify)
    every["describe"]["trigger_rule"] = TriggerRule.ALL_SUCCESS
    every["report"] |= add_callback(default_args, "on_success_callback", drifted)
    every["overview"] |= add_callback(default_args, "on_failure_callback", missed)
    with build_dag(
        prefix + DAG_ID,
        description="Reports the differences between Git and the clusters; writes to no cluster",
        doc_md=ABOUT,
        schedule=schedule,
        deadline=notify.get("late"),
        tags={"quota-ops"},
        default_args={**DEFAULT_ARGS, **default_args},
    ) as dag:
        mapped = {"map_index_template": CLUSTER_NAME}
        described = describe.override(**every["describe"])(clusters, run_store)
        diff = SparkDiff(task_id="diff", clusters=clusters, run_store=run_store, **every["diff"])
        reports = (
            report.override(**mapped, **every["report"])
            .partial(run_store=run_store)
            .expand(cluster=clusters)
        )
        last = overview.override(**every["overview"])(clusters, run_store)
        add_report_button(last)
        described >> diff >> reports >> last
    dag.doc_md = f"{dag.doc_md}{explain_pools(dag)}"
    return dag


@task
@log_errors()
def describe(clusters: Sequence[ClusterFolder], run_store: str | None) -> None:
    """Read the YAML and the stored quotas of each cluster, then fail if any could not be described.

    A retry reads only the clusters that were not described before.
    """
    describe_one = partial(_describe, run_store=run_store, is_retry=is_retry())
    with ThreadPoolExecutor(AT_ONCE) as threads:
        results = zip(clusters, threads.map(describe_one, clusters), strict=True)
        errors = {cluster.name: error for cluster, error in results if error is not None}
    if errors:
        kind = Unreachable if any(map(is_retryable, errors.values())) else ClusterTrouble
        raise kind(
            f"{len(errors):,} of {counted(len(clusters), 'cluster')} could not be described: "
            f"{', '.join(errors)}",
            "Their errors are above; all other clusters are compared and reported.",
        )


def _describe(
    cluster: ClusterFolder, *, run_store: str | None, is_retry: bool
) -> QuotaOpsError | None:
    """Describe a cluster; log and return the error if that fails."""
    try:
        if is_retry:
            earlier = start_folder(cluster, run_store).stage_result("describe")
            if earlier.status is StageStatus.DONE:
                return None
        with open_run(cluster, run_store, reads_files=True) as run:
            run_stage("check", run)
            run_stage("describe", run)
    except QuotaOpsError as error:
        for line in str(error).splitlines():
            _log.error("%s: %s", cluster.name, line)
        return error
    _log.info("%s: described", cluster.name)
    return None


@task(outlets=[DRIFTED])
@log_errors()
def report(cluster: ClusterFolder, run_store: str | None) -> str:
    """Write the cluster's report, even if the comparison failed; return the link to the page."""
    from quota_ops.store.run_folder import PAGE

    with open_run(cluster, run_store) as run:
        if run.folder.stage_result("diff").status is StageStatus.DONE:
            with suppress(GuardsRefused):  # the report shows guards that would block a reconcile
                run_stage("plan", run)
        run_stage("report", run)
        emit_drifted(run.folder)
        return find_page_link(run.folder.place / PAGE, run.store)


@task
@log_errors()
def overview(clusters: Sequence[ClusterFolder], run_store: str | None) -> str:
    """Write one page about all clusters, then fail if any could not be compared."""
    from quota_ops.report import fleet as pages
    from quota_ops.store.run_folder import ABOUT, PAGE, RunFolder

    fleet = [(one.name, _read_report(one, run_store)) for one in clusters]
    store = find_store(run_store)
    folder = RunFolder(store.overview(name_run(get_current_context())))
    folder.write_json(ABOUT, {"run": folder.place.name, "started": iso_utc()})
    folder.write_text(PAGE, pages.as_html(fleet))
    folder.write_text("report.md", pages.as_markdown(fleet))
    folder.write_text("report.txt", pages.as_text(fleet))
    page = find_page_link(folder.place / PAGE, store)
    offer_link(page)
    if missed := [name for name, report in fleet if isinstance(report, str)]:
        raise ClusterTrouble(
            f"{len(missed):,} of {counted(len(fleet), 'cluster')} could not be compared: "
            f"{', '.join(missed)}",
            f"The report of all clusters is {page}",
        )
    refuse_unless_done(page)
    return page


def _read_report(cluster: ClusterFolder, run_store: str | None) -> "Report | str":
    """Return the report of a cluster, or why it could not be compared."""
    from quota_ops.stages.report.run_report import read_report

    folder = start_folder(cluster, run_store)
    for stage in ("check", "describe", "diff"):
        result = folder.stage_result(stage)
        if result.status is not StageStatus.DONE:
            return f"{stage} {result.message or result.status}"
    return read_report(folder)
