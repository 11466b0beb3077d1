"""The background services of `quota-ops up`: the sandbox broker, Spark, and an Airflow."""

import os
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib.resources import as_file
from pathlib import Path

from msgspec import Struct
from platformdirs import user_state_path

from quota_ops.connections import connections_folder
from quota_ops.jvm.pinned_jars import lock_file
from quota_ops.lab.airflow.server import RunningAirflow, local_bundle, start_airflow
from quota_ops.lab.demo.repository import DAG_FILE, EXAMPLE
from quota_ops.lab.kafka.sandbox import (
    DEMO_CLUSTER_ID,
    SandboxStatus,
    find_sandbox,
    start_sandbox,
    stop_sandbox,
)
from quota_ops.lab.spark_server import SparkServer, start_spark_server
from quota_ops.store.places.place import Place
from quota_ops.store.places.run_store import ENVIRONMENT, find_run_store

_SPARK = "spark"
"""The folder of the Spark server, in Airflow's home."""
_OWN_SANDBOX = "sandbox.pid"
"""The file in Airflow's home with the process of the sandbox that `up` started."""


class Up(Struct, frozen=True):
    """The running services; `started` is whether this call started Airflow.

    `owns_sandbox` is whether `stop_services` stops the sandbox too.
    """

    kafka: str
    spark: str
    airflow: RunningAirflow
    run_store: Place
    owns_sandbox: bool
    started: bool


def start_services(show: Callable[[str], object]) -> Up:
    """Start the services that are not running yet, and return when they are healthy.

    `show` gets a line for each service that starts. Airflow's home is QUOTA_OPS_AIRFLOW, or a
    folder in the user's state; its history persists across starts. Raises the errors of
    `start_sandbox`, `start_spark_server` and `start_airflow`.
    """
    store = find_run_store().root
    if not find_sandbox().running:
        show("starting Kafka ...")
    sandbox = start_sandbox()
    with _lock_home() as home:
        if sandbox.started:
            (home / _OWN_SANDBOX).write_text(str(sandbox.nodes[0].pid))
        owned = _owns(home, sandbox)
        airflow, spark = RunningAirflow.find(home), SparkServer.find(home / _SPARK)
        if airflow and airflow.running and spark and spark.running:
            return Up(sandbox.bootstrap, spark.endpoint, airflow, store, owned, started=False)
        show("starting Spark and Airflow, which take longer than Kafka ...")
        spark = start_spark_server(home / _SPARK, detached=True)
        environment = {
            ENVIRONMENT: str(store),
            # A scheduled run that waits for approval would keep the first run of a person queued.
            "AIRFLOW__SCHEDULER__USE_JOB_SCHEDULE": "False",
            "QUOTA_OPS_CONNECTIONS": str(connections_folder()),
            **spark.airflow_environment,
        }
        with ThreadPoolExecutor(1) as beside:
            warm = beside.submit(spark.warm_up)
            try:
                if not (airflow and airflow.running):
                    bundle = local_bundle(_find_dags(home, sandbox.nodes[0].cluster_id))
                    airflow = start_airflow(
                        home, bundle, environment=environment, triggerer=True, detached=True
                    )
                warm.result()
            except BaseException:
                spark.stop()  # otherwise it would run on, with nothing to serve
                raise
        return Up(sandbox.bootstrap, spark.endpoint, airflow, store, owned, started=True)


def _owns(home: Path, sandbox: SandboxStatus) -> bool:
    """Return whether `up` started the sandbox that runs."""
    file = home / _OWN_SANDBOX
    return sandbox.running and file.exists() and file.read_text() == str(sandbox.nodes[0].pid)


def stop_services() -> bool:
    """Stop Airflow, Spark, and the sandbox if `start_services` started it.

    Returns whether one of them was running.
    """
    with _lock_home() as home:
        found = [*filter(None, (RunningAirflow.find(home), SparkServer.find(home / _SPARK)))]
        ran = any(server.running for server in found)
        for service in found:
            service.stop()
        return (_owns(home, find_sandbox()) and stop_sandbox()) or ran


def _find_dags(home: Path, cluster_id: str) -> Path:
    """Return ./dags, or a folder with DAGs for ./desired_state or a copy of the demo's files.

    The copy declares the quotas of the cluster with the id.
    """
    here = Path("dags").resolve()
    if here.is_dir():
        return here
    desired_state = Path(
        "desired_state"
    ).absolute()  # not resolve(): build_dags must see a link to reject it
    if not desired_state.is_dir():
        desired_state = home / "desired_state"
        with as_file(EXAMPLE) as example:
            shutil.copytree(example, desired_state / "demo", dirs_exist_ok=True)
        policy = desired_state / "demo" / "cluster.yaml"
        policy.write_text(policy.read_text().replace(DEMO_CLUSTER_ID, cluster_id))
    folder = home / "dags"
    folder.mkdir(exist_ok=True)
    (folder / "quota_ops_dags.py").write_text(DAG_FILE.format(desired_state=str(desired_state)))
    return folder


@contextmanager
def _lock_home() -> Iterator[Path]:
    """Lock Airflow's home, so that no other call starts or stops it."""
    chosen = os.environ.get("QUOTA_OPS_AIRFLOW")
    home = (Path(chosen) if chosen else user_state_path("quota-ops") / "airflow").resolve()
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    with lock_file(home / ".lock"):
        yield home
