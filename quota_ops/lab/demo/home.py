"""The folder of the demo, and the Kafka and Airflow that run in it."""

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct

from quota_ops.jvm.pinned_jars import Progress
from quota_ops.lab.airflow.server import RunningAirflow, find_airflow, local_bundle, start_airflow
from quota_ops.lab.demo.repository import Repository
from quota_ops.lab.kafka.broker import RunningBroker, start_broker
from quota_ops.lab.kafka.config import BrokerConfig
from quota_ops.lab.kafka.sandbox import DEMO_CLUSTER_ID
from quota_ops.lab.spark_server import SparkServer, start_spark_server
from quota_ops.model.errors import InvalidInput
from quota_ops.store.places.run_store import ENVIRONMENT, find_run_store

WINDOW = 3
"""Of how many seconds the broker limits the average; its default, 11, shows a new limit later."""


class Home(Struct, frozen=True):
    """A folder with everything that the demo creates; the demo changes no other files."""

    path: Path

    def check(self) -> None:
        """Raise InvalidInput when the folder is inside a Git checkout."""
        try:
            find_run_store(str(self.store))
        except InvalidInput as inside:
            raise InvalidInput(inside.message, "Pass a folder outside of it to --keep.") from None

    @property
    def repository(self) -> Repository:
        """The Git repository."""
        return Repository(self.path / "repository")

    @property
    def store(self) -> Path:
        """The run store of the commands and the DAGs."""
        return self.path / "store"

    @property
    def connection(self) -> Path:
        """The connection file of the name demo."""
        return self.path / "demo.properties"

    @property
    def environment(self) -> dict[str, str]:
        """The environment variables that set the run store and connection of commands and DAGs."""
        return {ENVIRONMENT: str(self.store), "QUOTA_OPS_CONNECTION_DEMO": str(self.connection)}

    def start_kafka(self, progress: Progress) -> RunningBroker:
        """Start the broker and write its connection file; `progress` counts fetched jars."""
        window = {"quota.window.num": str(WINDOW)}
        config = BrokerConfig(cluster_id=DEMO_CLUSTER_ID, properties=window)
        broker = start_broker(config, self.path / "kafka", progress=progress)
        self.connection.write_text(f"bootstrap.servers={broker.bootstrap()}\n", encoding="ascii")
        return broker

    @contextmanager
    def start_airflow(self) -> Iterator[Future[RunningAirflow]]:
        """Start Airflow and its Spark in threads, and stop both at the end of the block."""
        spark = start_spark_server(self.path / "spark")
        with spark, ThreadPoolExecutor(2) as beside:
            warm = beside.submit(spark.warm_up)
            airflow = beside.submit(self._start_airflow, spark, warm)
            try:
                yield airflow
            finally:
                _stop(airflow, self._airflow)

    @property
    def _airflow(self) -> Path:
        return self.path / "airflow"

    def _start_airflow(self, spark: SparkServer, warm: Future[None]) -> RunningAirflow:
        # The demo triggers its runs; scheduled runs of cluster.yaml would interfere.
        unscheduled = {"AIRFLOW__SCHEDULER__USE_JOB_SCHEDULE": "False"}
        airflow = start_airflow(
            self._airflow,
            local_bundle(self.repository.dags),
            environment=self.environment | spark.airflow_environment | unscheduled,
        )
        warm.result()
        return airflow


def _stop(airflow: Future[RunningAirflow], folder: Path) -> None:
    """Stop an Airflow, even if it is still starting."""
    while True:
        has_started = airflow in wait([airflow], timeout=0.2).done
        if found := find_airflow(folder):
            found.stop()
        if has_started:
            return
