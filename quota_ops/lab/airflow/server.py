"""A real Airflow for the demo and the tests, with its own home, on loopback only."""

import json
import os
import sys
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from quota_ops.lab.process import Server, choose_port, launch, wait_for_start
from quota_ops.model.errors import ClusterTrouble, InvalidInput, MissingTool

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


_PARTS = ("api-server", "dag-processor", "scheduler")
"""In the order of their start; the API server reports the health of all."""
_LOG = "airflow.log"
_USER = "admin"
_PASSWORDS = "simple_auth_manager_passwords.json.generated"


@dataclass(frozen=True, kw_only=True)
class RunningAirflow(Server):
    """A running Airflow; as a context manager it stops at the end of the block."""

    MARK = "--quota-ops-airflow={}/"

    @property
    def address(self) -> str:
        """The address for a browser."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def login(self) -> tuple[str, str]:
        """The user and the password, which Airflow generates at its first start."""
        passwords = json.loads((self.home / _PASSWORDS).read_text())
        return _USER, passwords[_USER]

    @property
    def api(self) -> AirflowApi:
        """An authenticated client of its REST API."""
        return AirflowApi(self.port, *self.login)

    @property
    def log(self) -> Path:
        """The log of all its parts; the logs of tasks are in logs/."""
        return self.home / _LOG


def start_airflow(
    home: Path,
    bundle: Mapping[str, Any],
    *,
    environment: Mapping[str, str] | None = None,
    triggerer: bool = False,
    detached: bool = False,
) -> RunningAirflow:
    """Start an Airflow in `home`, and return it when it is healthy.

    `bundle` locates its DAGs, for example `local_bundle(folder)`. `environment` has further
    variables for its parts and tasks. No DAG of quota-ops needs the triggerer, but without one its
    badge in the browser is red. An existing home is reused, with its port if that is free. Airflow
    ends with this process, unless `detached`. Raises MissingTool when Airflow is not installed, and
    the errors of `wait_for_start`.
    """
    if find_spec("airflow") is None:
        raise MissingTool(
            "Airflow is not installed.", "Install quota-ops with the extra [airflow]."
        )
    home = home.resolve()
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    earlier = RunningAirflow.find(home)
    port = choose_port(earlier.port if earlier else 0)
    settings = _build_environment(home, port, bundle) | dict(environment or {})
    parts = (*_PARTS, *(["triggerer"] if triggerer else []))
    command = [sys.executable, "-I", str(Path(__file__).with_name("parts.py"))]
    mark = RunningAirflow.MARK.format(home)
    process = launch(
        [*command, mark, *parts],
        mark=mark,
        log=home / _LOG,
        environment=settings,
        detached=detached,
    )
    running = RunningAirflow(home=home, port=port, process=process)
    running.save()
    try:
        wait_for_start(
            "Airflow",
            process,
            running.log,
            lambda: {"metadatabase", *parts} - list_healthy_parts(port),
        )
    except BaseException:
        running.stop()
        raise
    return running


def local_bundle(folder: Path) -> dict[str, Any]:
    """Return the DAG bundle of a folder."""
    classpath = "airflow.dag_processing.bundles.local.LocalDagBundle"
    return {"name": "quota-ops", "classpath": classpath, "kwargs": {"path": str(folder)}}


def _build_environment(home: Path, port: int, bundle: Mapping[str, Any]) -> dict[str, str]:
    """Return the environment of this process, with its Airflow variables replaced by the home's."""
    inherited = {
        name: value for name, value in os.environ.items() if not name.startswith("AIRFLOW_")
    }
    address = f"http://127.0.0.1:{port}"
    settings = {
        "API__BASE_URL": address,
        "API__HOST": "127.0.0.1",
        "API__PORT": str(port),
        "CORE__DAGS_ARE_PAUSED_AT_CREATION": "False",
        "CORE__EXECUTION_API_SERVER_URL": f"{address}/execution/",
        "CORE__LOAD_EXAMPLES": "False",
        "CORE__PARALLELISM": "4",
        "DAG_PROCESSOR__DAG_BUNDLE_CONFIG_LIST": json.dumps([bundle]),
        "DAG_PROCESSOR__DAG_BUNDLE_STORAGE_PATH": str(home / "bundles"),
        "DAG_PROCESSOR__REFRESH_INTERVAL": "5",
        "SCHEDULER__SCHEDULER_IDLE_SLEEP_TIME": "0.2",
        "USAGE_DATA_COLLECTION__ENABLED": "False",
    }
    return {
        **inherited,
        # The parts connect to each other directly, not through a company's proxy.
        **{name: f"127.0.0.1,{inherited.get(name, '')}" for name in ("NO_PROXY", "no_proxy")},
        "AIRFLOW_HOME": str(home),
        **{f"AIRFLOW__{name}": value for name, value in settings.items()},
    }
