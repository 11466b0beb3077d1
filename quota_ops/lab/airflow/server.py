"""A real Airflow for the demo and the tests, with its own home, on loopback only."""

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from quota_ops.lab.airflow.api import AirflowApi, list_healthy_parts
from quota_ops.lab.process import OwnProcess, Server, choose_port, launch, wait_for_start
from quota_ops.model.errors import MissingTool

_PARTS = ("api-server", "dag-processor", "scheduler")
"""In the order of their start; the API server reports the health of all."""
_LOG = "airflow.log"
_STATE = "airflow.json"
_USER = "admin"
_PASSWORDS = "simple_auth_manager_passwords.json.generated"


@dataclass(frozen=True, kw_only=True)
class RunningAirflow(Server):
    """A running Airflow; as a context manager it stops at the end of the block."""

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
    earlier = find_airflow(home)
    port = choose_port(earlier.port if earlier else 0)
    settings = _build_environment(home, port, bundle) | dict(environment or {})
    parts = (*_PARTS, *(["triggerer"] if triggerer else []))
    command = [sys.executable, "-I", str(Path(__file__).with_name("parts.py"))]
    process = launch(
        [*command, _build_mark(home), *parts],
        mark=_build_mark(home),
        log=home / _LOG,
        environment=settings,
        detached=detached,
    )
    (home / _STATE).write_text(json.dumps({"pid": process.pid, "port": port}))
    running = RunningAirflow(home=home, port=port, process=process)
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


def find_airflow(home: Path) -> RunningAirflow | None:
    """Return the Airflow last started in a home, running or not; None if there was none."""
    home = home.resolve()
    try:
        state = json.loads((home / _STATE).read_text())
        process = OwnProcess(pid=state["pid"], mark=_build_mark(home))
        return RunningAirflow(home=home, port=state["port"], process=process)
    except (OSError, ValueError, KeyError, TypeError):  # or a file that a crash left incomplete
        return None


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


def _build_mark(home: Path) -> str:
    return f"--quota-ops-airflow={home}/"
