"""Runs in a local Airflow, for tests that wait for them."""

import time
from pathlib import Path
from typing import Any

from quota_ops.lab.airflow.server import AirflowApi
from quota_ops.model.errors import ClusterTrouble

_ENDED = {"success", "failed"}


def git_bundle(repository: Path, branch: str = "main") -> dict[str, Any]:
    """Return the DAG bundle of a branch of a local Git repository, which pins runs to a commit."""
    return {
        "name": "quota-ops",
        "classpath": "airflow.providers.git.bundles.git.GitDagBundle",
        "kwargs": {"repo_url": str(repository), "tracking_ref": branch},
    }


def wait_for_run(api: AirflowApi, dag_id: str, run_id: str, seconds: float = 300.0) -> str:
    """Wait until a run has ended; return its state, success or failed."""
    deadline = time.monotonic() + seconds
    while (state := api.read_state(dag_id, run_id)) not in _ENDED:
        if time.monotonic() > deadline:
            raise ClusterTrouble(f"{dag_id} {run_id} is still {state}")
        time.sleep(0.2)
    return state


def wait_for_runs(api: AirflowApi, dag_id: str, seconds: float = 60.0) -> list[str]:
    """Wait until a DAG has runs, however they were started; return their run ids."""
    deadline = time.monotonic() + seconds
    while not (runs := api.call("GET", f"/dags/{dag_id}/dagRuns")["dag_runs"]):
        if time.monotonic() > deadline:
            raise ClusterTrouble(f"{dag_id} has no run")
        time.sleep(0.2)
    return [str(run["dag_run_id"]) for run in runs]


def list_waiting_runs(api: AirflowApi, dag_id: str) -> list[str]:
    """Return the ids of a DAG's runs that are waiting for approval in the task `approve`."""
    path = f"/dags/{dag_id}/dagRuns/~/hitlDetails?response_received=false"
    found = api.call("GET", path)["hitl_details"]
    return [str(entry["task_instance"]["dag_run_id"]) for entry in found]
