"""The DAGs of a repository of quotas: the only package that imports Airflow.

A DAG file imports this function and calls it once:

    from pathlib import Path
    from quota_ops.airflow import build_dags
    globals().update(build_dags(Path(__file__).parents[1] / "desired_state"))

A DAG of your own takes a task group for each cluster: QuotaReconcile(cluster=..., ...).
"""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

from airflow.sdk import DAG, get_parsing_context
from airflow.sdk.execution_time.hitl import HITLUser

from quota_ops.airflow.assets import applied_asset, drifted_asset
from quota_ops.airflow.drift import DAG_ID as DRIFT
from quota_ops.airflow.drift import TASKS as DRIFT_TASKS
from quota_ops.airflow.drift import build_drift_dag
from quota_ops.airflow.notify import News, Notify, check_notify
from quota_ops.airflow.options import TaskOptions, check_task_options
from quota_ops.airflow.reconcile import build_reconcile_dag, guard_params
from quota_ops.airflow.record_use import DAG_ID as RECORD
from quota_ops.airflow.record_use import build_record_dag
from quota_ops.airflow.runs import ClusterFolder, find_bundle_folder
from quota_ops.airflow.task_group import TASKS, QuotaReconcile, refuse_missing_folder
from quota_ops.desired.files import cluster_folders, dag_id
from quota_ops.desired.read import find_policy
from quota_ops.model.errors import InvalidInput

__all__ = [
    "InvalidInput",
    "News",
    "Notify",
    "QuotaReconcile",
    "TaskOptions",
    "applied_asset",
    "build_dags",
    "drifted_asset",
    "guard_params",
]


def build_dags(
    desired_state: Path,
    run_store: str | None = None,
    drift_schedule: str | None = "0 * * * *",
    approval_timeout: timedelta = timedelta(hours=4),
    notify: Notify | None = None,
    *,
    approvers: Sequence[str | HITLUser] | None = None,
    default_args: Mapping[str, Any] | None = None,
    task_options: Mapping[str, TaskOptions] | None = None,
    engine: str = "spark",
    dag_id_prefix: str = "",
    schedule_jitter: timedelta = timedelta(0),
) -> dict[str, DAG]:
    """Build one reconcile DAG for each cluster and one drift DAG for all, by DAG id.

    If cluster.yaml of a cluster has `usage`, the DAG record_use keeps what clients use each day.

    A cluster is a folder of `desired_state` that has YAML files. Only its cluster.yaml and files
    that mention `until` are parsed here: 10,000 quotas without one take 15 ms. If cluster.yaml is
    missing or invalid, the DAG has no schedule, and its task check fails and shows the problem.
    If two folders would give the same DAG id, the check of both fails and names both.

    `run_store` is the folder of runs and ledgers; None takes QUOTA_OPS_RUN_STORE from the
    environment. `drift_schedule` is a cron expression in UTC. A plan waits `approval_timeout` for
    a decision, then its run fails. `notify` has the notifiers for each event. `approvers` are the
    users who may approve or reject a plan, each by id or as {"id": ..., "name": ...}; None allows
    everyone who may edit runs of the DAG.

    `default_args` apply to all DAGs. `task_options` has options of single tasks, by the name of the
    task; the tasks describe, diff and report are in both kinds of DAG. A pool must exist: the
    documentation of each DAG and the log of check have the command that creates it. check itself
    takes its slot from the default pool, unless its own options name another.

    `engine` runs the diff of a reconcile DAG: "spark", or "embedded", which compares one small
    cluster in the task itself, without Java. The drift DAG compares all clusters on Spark.

    Every DAG id begins with `dag_id_prefix`. `schedule_jitter` is the longest delay of scheduled
    runs, so that not all begin at the same time. The delay of a cluster depends on its name, and a
    run still begins in the hour of its schedule.

    When Airflow starts a task, it parses the file again, and the result has only that task's DAG.

    Raises InvalidInput, which Airflow shows as an import error of the DAG file, where the folder
    does not exist, for an unknown event, task, option or engine, or for invalid `approvers`.
    """
    refuse_missing_folder(desired_state)
    # A link is an error, because a commit could point it outside the checkout.
    found = cluster_folders(desired_state, find_bundle_folder(desired_state))
    folders = tuple(desired_state.resolve() / folder.name for folder in found)
    notifiers = check_notify(notify)
    options = check_task_options(task_options, tuple(dict.fromkeys((*TASKS, *DRIFT_TASKS))))
    args, wanted = default_args or {}, get_parsing_context().dag_id
    dags = [
        build_reconcile_dag(
            folder,
            approval_timeout,
            notifiers,
            args,
            prefix=dag_id_prefix,
            jitter=schedule_jitter,
            run_store=run_store,
            approvers=approvers,
            engine=engine,
            task_options={name: options[name] for name in TASKS if name in options},
        )
        for folder in folders
        if wanted in {None, dag_id_prefix + dag_id(folder)}
    ]
    if folders and wanted in {None, dag_id_prefix + DRIFT}:
        dags.append(
            build_drift_dag(
                [ClusterFolder(folder) for folder in folders],
                run_store,
                drift_schedule,
                notifiers,
                prefix=dag_id_prefix,
                default_args=args,
                task_options=options,
            )
        )
    if wanted in {None, dag_id_prefix + RECORD} and (
        measured := [
            ClusterFolder(folder)
            for folder in folders
            if (policy := find_policy(folder)) and policy.usage
        ]
    ):
        dags.append(
            build_record_dag(
                measured, run_store, notifiers, prefix=dag_id_prefix, default_args=args
            )
        )
    return {dag.dag_id: dag for dag in dags}
