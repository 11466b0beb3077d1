"""The DAGs of a repository of quotas: the only room that imports Airflow.

A DAG file imports this function and calls it once:

    from pathlib import Path
    from quota_ops.airflow import build_dags
    globals().update(build_dags(Path(__file__).parents[1] / "desired_state"))
"""

from datetime import timedelta
from pathlib import Path

from airflow.sdk import DAG

from quota_ops.airflow.drift import build_drift_dag
from quota_ops.airflow.notify import News, Notify, check_notify
from quota_ops.airflow.reconcile import build_reconcile_dag
from quota_ops.airflow.runs import find_bundle_folder
from quota_ops.desired.files import cluster_folders
from quota_ops.model.errors import InvalidInput

__all__ = ["InvalidInput", "News", "Notify", "build_dags"]


def build_dags(
    desired_state: Path,
    run_store: str | None = None,
    drift_schedule: str | None = "0 * * * *",
    approval_timeout: timedelta = timedelta(hours=4),
    notify: Notify | None = None,
) -> dict[str, DAG]:
    """Build one reconcile DAG for each cluster and one drift DAG for all, by DAG id.

    A cluster is a folder of `desired_state` that has YAML files. Only its cluster.yaml is read
    here, so a DAG file parses in milliseconds however many quotas there are. A cluster whose
    cluster.yaml is missing or invalid still gets its DAG, without a schedule; its task check
    fails and shows the problem. Where two folders would give the same DAG id, the check of both
    fails and names both.

    `run_store` is the folder of runs and ledgers; None takes QUOTA_OPS_RUN_STORE from the
    environment. `drift_schedule` is a cron expression in UTC. A plan waits `approval_timeout` for
    a decision, then its run fails. `notify` has the notifiers for each event.

    Raises InvalidInput, which Airflow shows as an import error of the DAG file, where the folder
    does not exist or `notify` has an unknown event.
    """
    if not desired_state.is_dir():
        raise InvalidInput(
            f"{desired_state} is not a folder",
            "Give build_dags the folder that has one folder for each cluster.",
        )
    # Rejects a link that a commit may have made.
    found = cluster_folders(desired_state, find_bundle_folder(desired_state))
    folders = tuple(desired_state.resolve() / folder.name for folder in found)
    checked = check_notify(notify)
    dags = [build_reconcile_dag(one, run_store, approval_timeout, checked) for one in folders]
    if folders:
        dags.append(build_drift_dag(folders, run_store, drift_schedule, checked))
    return {dag.dag_id: dag for dag in dags}
