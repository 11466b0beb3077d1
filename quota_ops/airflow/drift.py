"""The drift DAG of all clusters: looks, compares and reports, and never writes to one."""

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from airflow.sdk import DAG, TriggerRule, get_current_context, task

from quota_ops.airflow.endings import plainly
from quota_ops.airflow.notify import Notify, when_drifted, when_unseen
from quota_ops.airflow.runs import run_folder, run_name, store_of, this_run
from quota_ops.airflow.spark import SparkDiff
from quota_ops.airflow.tasks import one_at_a_time, refuse_unless_done, run_stage
from quota_ops.model.errors import ClusterTrouble, GuardsRefused
from quota_ops.model.moment import iso_utc
from quota_ops.model.report import StageStatus
from quota_ops.model.text import counted

if TYPE_CHECKING:
    from quota_ops.model.report import Report

ABOUT = """\
Says what differs between Git and the clusters. It never writes to a cluster, nor to a ledger.

describe reads every cluster, diff compares all that answered in one Spark job, report writes a
page for each cluster, overview one for all; the last line of its log is the path.

Drift alone leaves a run green: the reports tell it. The run is red when a cluster could not be
looked at, because nobody knows then what it holds; all the others are reported all the same.
"""
CLUSTER_NAME = "{{ task.op_kwargs['cluster_folder'].rpartition('/')[2] }}"


def drift_dag(
    folders: Sequence[Path], run_store: str | None, schedule: str | None, notify: Notify
) -> DAG:
    """The DAG that reports the drift of every cluster, and of all together."""
    clusters = [str(folder) for folder in folders]
    always = TriggerRule.ALL_DONE
    with one_at_a_time(
        "drift",
        description="Says what differs between Git and the clusters; writes to none",
        doc_md=ABOUT,
        schedule=schedule,
        deadline=notify.get("late"),
        tags={"quota-ops"},
    ) as dag:
        mapped = {"map_index_template": CLUSTER_NAME}
        described = (
            describe.override(**mapped).partial(run_store=run_store).expand(cluster_folder=clusters)
        )
        reports = (
            report.override(
                **mapped, trigger_rule=always, on_success_callback=when_drifted(run_store, notify)
            )
            .partial(run_store=run_store)
            .expand(cluster_folder=clusters)
        )
        diff = SparkDiff(
            task_id="diff", cluster_folders=clusters, run_store=run_store, trigger_rule=always
        )
        described >> diff >> reports
        last = {"trigger_rule": always, "on_failure_callback": when_unseen(notify)}
        reports >> overview.override(**last)(clusters, run_store)
    return dag


@task
@plainly()
def describe(cluster_folder: str, run_store: str | None) -> str:
    """Read the cluster's YAML and everything that the cluster holds; gives the run's folder."""
    with this_run(cluster_folder, run_store, anew=True) as run:
        run_stage("check", run)
        run_stage("describe", run)
        return str(run.folder.place)


@task
@plainly()
def report(cluster_folder: str, run_store: str | None) -> str:
    """Write the cluster's report, also when it could not be looked at; gives the page's path."""
    from quota_ops.store.run_folder import PAGE

    with this_run(cluster_folder, run_store) as run:
        if run.folder.stage_result("diff").status is StageStatus.DONE:
            with suppress(GuardsRefused):  # a reconcile would meet it: the report says so
                run_stage("plan", run)
        run_stage("report", run)
        return str(run.folder.place / PAGE)


@task
@plainly()
def overview(cluster_folders: Sequence[str], run_store: str | None) -> str:
    """Write one page over all clusters, then fail if one could not be looked at."""
    from quota_ops.report import fleet as pages
    from quota_ops.store.run_folder import ABOUT, PAGE, RunFolder

    fleet = [(Path(one).name, _looked_at(one, run_store)) for one in cluster_folders]
    folder = RunFolder(store_of(run_store).overview(run_name(get_current_context())))
    folder.write_json(ABOUT, {"run": folder.place.name, "started": iso_utc()})
    folder.write_text(PAGE, pages.as_html(fleet))
    folder.write_text("report.md", pages.as_markdown(fleet))
    folder.write_text("report.txt", pages.as_text(fleet))
    page = folder.place / PAGE
    if unseen := [name for name, report in fleet if isinstance(report, str)]:
        raise ClusterTrouble(
            f"{len(unseen):,} of {counted(len(fleet), 'cluster')} could not be looked at: "
            f"{', '.join(unseen)}",
            f"The others were, and all are in {page}",
        )
    refuse_unless_done(page)
    return str(page)


def _looked_at(cluster_folder: str, run_store: str | None) -> "Report | str":
    """The report of a cluster that was compared, or why it was not."""
    from quota_ops.stages.report.run_report import read_report

    folder = run_folder(cluster_folder, run_store)
    for stage in ("check", "describe", "diff"):
        result = folder.stage_result(stage)
        if result.status is not StageStatus.DONE:
            return f"{stage} {result.message or result.status}"
    return read_report(folder)
