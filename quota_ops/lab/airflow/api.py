"""A client of a local Airflow's REST API, for the demo and the tests."""

import json
import time
import uuid
from collections.abc import Mapping
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException
from typing import Any

from quota_ops.model.errors import ClusterTrouble, InvalidInput

_PATIENCE = 300.0
"""For how many seconds requests that a busy Airflow does not respond to in time are repeated."""


def list_healthy_parts(port: int) -> set[str]:
    """Return the healthy parts of Airflow, by their commands; none while it is still starting."""
    try:
        health = _send_request(port, "GET", "/api/v2/monitor/health")
    except (OSError, HTTPException, ClusterTrouble):
        return set()
    healthy = {part for part, found in health.items() if found["status"] == "healthy"}
    return {"api-server", *(part.replace("_", "-") for part in healthy)}


class AirflowApi:
    """An authenticated client of the API on a port of 127.0.0.1.

    Its methods raise InvalidInput with Airflow's message when Airflow rejects a request, and
    ClusterTrouble when a request fails or a wait times out. A busy Airflow that does not respond in
    time is asked again for five minutes.
    """

    def __init__(self, port: int, user: str, password: str) -> None:
        self._port = port
        self._token = ""
        login = {"username": user, "password": password}
        self._token = str(self._repeat("POST", "/auth/token", login)["access_token"])

    def wait_for_dag(self, dag_id: str, seconds: float = 60.0) -> None:
        """Wait until Airflow has loaded a DAG, and unpause it."""
        deadline = time.monotonic() + seconds
        while dag_id not in {dag["dag_id"] for dag in self.call("GET", "/dags")["dags"]}:
            if time.monotonic() > deadline:
                errors = self.call("GET", "/importErrors")["import_errors"]
                raise ClusterTrouble(f"Airflow has not loaded the DAG {dag_id}: {errors}")
            time.sleep(0.2)
        self.call("PATCH", f"/dags/{dag_id}", {"is_paused": False})

    def trigger(self, dag_id: str, **params: Any) -> str:
        """Start a run of a DAG and return its run id."""
        run_id = f"manual__{uuid.uuid4()}"  # so that a repeated request starts no second run
        body = {"logical_date": None, "conf": params, "dag_run_id": run_id}
        try:
            self.call("POST", f"/dags/{dag_id}/dagRuns", body)
        except InvalidInput as rejected:
            try:  # an earlier request may have arrived late
                self.read_state(dag_id, run_id)
            except InvalidInput:
                raise rejected from None
        return run_id

    def read_state(self, dag_id: str, run_id: str) -> str:
        """Return a run's state: queued, running, success or failed."""
        return str(self.call("GET", f"/dags/{dag_id}/dagRuns/{run_id}")["state"])

    def list_tasks(self, dag_id: str, run_id: str) -> list[dict[str, Any]]:
        """Return a run's task instances, as Airflow's API describes them."""
        found = self.call("GET", f"/dags/{dag_id}/dagRuns/{run_id}/taskInstances")
        return list(found["task_instances"])

    def decide(self, dag_id: str, run_id: str, option: str, why: str) -> None:
        """Approve or Reject the plan of a waiting run, with a reason."""
        path = f"/dags/{dag_id}/dagRuns/{run_id}/taskInstances/approve/-1/hitlDetails"
        body = {"chosen_options": [option], "params_input": {"why": why}}
        self.call("PATCH", path, body)

    def read_log(self, dag_id: str, run_id: str, task_id: str, try_number: int = 1) -> str:
        """Return the log of one try of a task, one line for each event."""
        path = f"/dags/{dag_id}/dagRuns/{run_id}/taskInstances/{task_id}/logs/{try_number}"
        return "\n".join(str(line.get("event", line)) for line in self.call("GET", path)["content"])

    def call(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """Return the response to a request; the path is below `/api/v2`."""
        return self._repeat(method, f"/api/v2{path}", body)

    def _repeat(self, method: str, path: str, body: Mapping[str, Any] | None) -> Any:
        deadline = time.monotonic() + _PATIENCE
        while True:
            try:
                return _send_request(self._port, method, path, body, self._token)
            except ConnectionRefusedError as error:
                raise ClusterTrouble(
                    f"Airflow ended: nothing listens on port {self._port}"
                ) from error
            except (OSError, HTTPException) as error:
                if time.monotonic() > deadline:
                    raise ClusterTrouble(f"Airflow does not respond to {path}: {error}") from error
                time.sleep(1.0)


def _send_request(
    port: int, method: str, path: str, body: Mapping[str, Any] | None = None, token: str = ""
) -> Any:
    connection = HTTPConnection("127.0.0.1", port, timeout=30)
    headers = {"Accept": "application/json", "Content-Type": "application/json"}
    if token:
        headers["Authorization"] = f"Bearer {token}"
    try:
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        response = connection.getresponse()
        content = response.read()
    finally:
        connection.close()
    if response.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        raise ClusterTrouble(f"Airflow failed on {path}: HTTP status {response.status}")
    if response.status >= HTTPStatus.BAD_REQUEST:
        raise InvalidInput(f"Airflow rejected {path}: {content.decode(errors='replace')}")
    return json.loads(content)
