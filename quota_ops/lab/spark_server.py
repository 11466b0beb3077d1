"""A Spark Connect server for the demo, `quota-ops up` and the tests, on loopback only."""

import json
import os
import secrets
import sys
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from quota_ops.lab.kafka.broker import is_port_open
from quota_ops.lab.process import Server, choose_port, launch, wait_for_start, write_private
from quota_ops.sql.job import diff_runs
from quota_ops.sql.spark_archive import (
    KEEP_CODE,
    SMALL_JVM,
    driver_options,
    find_spark,
    write_training_run,
)
from quota_ops.store.places.run_store import open_place

_CLASS = "org.apache.spark.sql.connect.service.SparkConnectServer"
_SETTINGS = "server.conf"
_LOG = "spark.log"


@dataclass(frozen=True, kw_only=True)
class SparkServer(Server):
    """A Spark Connect server, running or not; as a context manager it stops at its end."""

    MARK = f"{{}}/{_SETTINGS}"
    token: str = field(repr=False)

    @property
    def endpoint(self) -> str:
        """Its address."""
        return f"sc://localhost:{self.port}"

    @property
    def address(self) -> str:
        """Its address with the token that it requires, for `connect` and SPARK_REMOTE."""
        return f"{self.endpoint}/;token={self.token}"

    @property
    def airflow_environment(self) -> dict[str, str]:
        """The environment variable that defines the Airflow connection to it, for the DAGs."""
        server = {"conn_type": "spark_connect", "host": "localhost", "port": self.port}
        return {"AIRFLOW_CONN_QUOTA_OPS_SPARK": json.dumps(server | {"password": self.token})}

    @property
    def log(self) -> Path:
        """Its log."""
        return self.home / _LOG

    def warm_up(self) -> None:
        """Wait until it responds, and compare a small run, so that the next diff is fast.

        Raises MissingTool without the packages of Spark Connect, and the errors of
        `wait_for_start`.
        """
        from quota_ops.sql.spark import SparkEngine  # pyspark
        from quota_ops.sql.spark_connect import connect  # pyspark

        wait_for_start(
            "Spark", self.process, self.log, lambda: [] if is_port_open(self.port) else ["Connect"]
        )
        with TemporaryDirectory(dir=self.home) as scratch, connect(self.address, {}) as session:
            write_training_run(Path(scratch, "run"))
            diff_runs(SparkEngine(session), [open_place(Path(scratch, "run"))])


def start_spark_server(home: Path, *, detached: bool = False) -> SparkServer:
    """Start a server in `home`, and return it before it responds, which `warm_up` waits for.

    A server that runs there already is returned. It keeps its port and token across starts, so that
    a connection to it stays valid. It ends with this process, unless `detached`. Raises
    MissingTool without pyspark or Java.
    """
    home = home.resolve()
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    earlier = SparkServer.find(home)
    if earlier and earlier.running:
        return earlier
    port = choose_port(earlier.port if earlier else 0)
    token = earlier.token if earlier else secrets.token_urlsafe(24)
    settings = home / _SETTINGS
    write_private(settings, _format_settings(port, token))
    spark_submit = [
        str(find_spark() / "bin" / "spark-class"),
        "org.apache.spark.deploy.SparkSubmit",
    ]
    process = launch(
        [*spark_submit, "--properties-file", str(settings), "--class", _CLASS, "spark-internal"],
        mark=str(settings),
        log=home / _LOG,
        environment=_environment(home),
        detached=detached,
    )
    server = SparkServer(home=home, port=port, token=token, process=process)
    server.save(token=token)
    return server


def _format_settings(port: int, token: str) -> str:
    settings = KEEP_CODE | {
        "spark.master": "local[*]",
        "spark.connect.authenticate.token": token,
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.defaultJavaOptions": driver_options(),
        "spark.driver.extraJavaOptions": SMALL_JVM,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "1g",
        "spark.log.level": "WARN",
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.enabled": "false",
    }
    return "".join(f"{name}={value}\n" for name, value in settings.items())


def _environment(home: Path) -> dict[str, str]:
    inherited = {name: value for name, value in os.environ.items() if "SPARK" not in name}
    return inherited | {
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_DIRS": str(home / "tmp"),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
