"""The DAGs of a repository of quotas: the only room that knows Airflow.

A DAG file needs two lines of it:

    from quota_ops.airflow import build_dags
    globals().update(build_dags(Path(__file__).parents[1] / "desired_state"))
"""

from datetime import timedelta
from pathlib import Path

from airflow.sdk import DAG

from quota_ops.airflow.bundle import find_bundle_folder
from quota_ops.airflow.drift import drift_dag
from quota_ops.airflow.notify import News, Notify, checked
from quota_ops.airflow.reconcile import reconcile_dag
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
    """One reconcile DAG for each cluster, one drift DAG for all, by their ids.

    A cluster is a folder of `desired_state` with YAML in it; only its cluster.yaml is read here: a
    DAG file parses in milliseconds however many quotas there are. One that is missing or does not
    parse still gives its DAG, unscheduled, whose check says what is wrong; where two folders would
    have one id, every check is red and names both. `run_store` is where runs and ledgers live, the
    environment's QUOTA_OPS_RUN_STORE when it is None; `drift_schedule` is cron, in UTC; a plan
    waits `approval_timeout` for a person, then it is given up; `notify` says who is told of what.
    Raises InvalidInput, which Airflow shows as the file's import error, when there is no such
    folder, or `notify` names what does not happen.
    """
    if not desired_state.is_dir():
        raise InvalidInput(
            f"{desired_state} is not a folder",
            "Give build_dags the folder whose sub-folders are clusters.",
        )
    # Refuses a link that a commit may have made.
    found = cluster_folders(desired_state, find_bundle_folder(desired_state))
    folders = tuple(desired_state.resolve() / folder.name for folder in found)
    told = checked(notify)
    dags = [reconcile_dag(folder, run_store, approval_timeout, told) for folder in folders]
    if folders:
        dags.append(drift_dag(folders, run_store, drift_schedule, told))
    return {dag.dag_id: dag for dag in dags}
