"""A repository of quotas with a DAG file, and Airflow inside the test process to run it."""

import atexit
import os
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any

import pytest

from quota_ops.kafka.cluster import open_cluster
from quota_ops.kafka.connection import Connection
from quota_ops.lab.kafka.broker import RunningBroker
from quota_ops.store.places.run_store import open_place
from quota_ops.store.run.folder import RunFolder
from tests.dag.answering import Answer, napping
from tests.writing import empty, write

if TYPE_CHECKING:
    from airflow.sdk import DAG

HOME = Path(mkdtemp(prefix="quota-ops-airflow-"))
"""Airflow reads its settings when it is first imported, so they are set before any fixture."""
atexit.register(shutil.rmtree, HOME, ignore_errors=True)
DAGS = HOME / "dags"
DAGS.mkdir()
os.environ |= {
    "AIRFLOW_HOME": str(HOME),
    "AIRFLOW__CORE__DAGS_FOLDER": str(DAGS),
    "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
    "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{HOME}/airflow.db",
    "AIRFLOW__LOGGING__LOGGING_LEVEL": "WARNING",
}
DAG_FILE = """\
from datetime import timedelta
from pathlib import Path
from quota_ops.airflow import build_dags
from tests.dag.told import told
globals().update(
    build_dags(
        Path({0!r}),
        approval_timeout=timedelta(seconds={1!r}),
        notify=told({2!r}),
        approvers={3!r},
    )
)
"""
ALICE = "{owner: payments, quotas: [{user: alice, limits: {producer_byte_rate: 1000}}]}"


@dataclass(frozen=True)
class DagRun:
    """The result of a DAG run and of each task: its state and the number of tries."""

    state: str
    tasks: Mapping[str, str]
    tries: Mapping[str, int]
    store: Path

    def folder(self, cluster: str = "demo") -> RunFolder:
        """Return the only run folder of a cluster in the store."""
        (path,) = (self.store / "runs" / cluster).iterdir()
        return RunFolder(open_place(path))


@dataclass(frozen=True)
class Repository:
    """A repository with a DAG file, and the store of its runs."""

    root: Path
    approval_seconds: float = 3600.0
    dag_file: str = DAG_FILE
    approvers: Sequence[str] | None = None

    @property
    def store(self) -> Path:
        """Return the folder of its runs and ledgers."""
        return self.root / "store"

    def cluster(self, name: str, *, cluster_id: str, **teams: str) -> None:
        """Write a cluster's folder: cluster.yaml, and a file per team."""
        folder = self.root / "desired_state" / name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "cluster.yaml").write_text(
            f"cluster_id: {cluster_id}\nconnection: {name}\nguards: {{small_byte_rate: 0}}\n"
        )
        for team, text in teams.items():
            (folder / f"{team}.yaml").write_text(text)

    @property
    def told(self) -> Path:
        """Return the file that the DAGs' notifiers write; it does not exist without news."""
        return self.root / "told.txt"

    def add_policy(self, name: str, line: str) -> None:
        """Add a line to a cluster's cluster.yaml."""
        with (self.root / "desired_state" / name / "cluster.yaml").open("a") as file:
            file.write(line + "\n")

    def dags(self) -> dict[str, "DAG"]:
        """Return the DAGs of its DAG file."""
        from airflow.dag_processing.dagbag import DagBag

        # Written again in the same second and at the same length, it would be taken from its cache.
        shutil.rmtree(DAGS / "__pycache__", ignore_errors=True)
        places = (
            str(self.root / "desired_state"),
            self.approval_seconds,
            str(self.told),
            self.approvers,
        )
        (DAGS / "quotas.py").write_text(self.dag_file.format(*places))
        bag = DagBag(dag_folder=DAGS)
        assert bag.import_errors == {}
        return dict(bag.dags)

    def run(
        self,
        dag_id: str,
        answer: Answer | None = None,
        at: datetime | None = None,
        *,
        marked: str | None = None,
        **params: Any,
    ) -> DagRun:
        """Run a DAG to its end in this process, with a real broker.

        `answer` is called, with the task that waits, whenever the run waits for a person. A run
        of the logical date `at` that there is already is cleared. The task `marked` does not run:
        it counts as successful, as if a person had marked it.
        """
        from airflow.sdk.definitions._internal.types import NOTSET

        dag = self.dags()[dag_id]
        for task in dag.tasks:
            task.retry_delay = timedelta(milliseconds=1)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(time, "sleep", napping(answer))
            close_pipes(patch)
            ended = dag.test(at, at or NOTSET, run_conf=params or None, mark_success_pattern=marked)
        instances = ended.get_task_instances()
        return DagRun(
            state=str(ended.state),
            tasks={ti.task_id: str(ti.state) for ti in instances},
            tries={ti.task_id: ti.try_number for ti in instances},
            store=self.store,
        )


def close_pipes(patch: pytest.MonkeyPatch) -> None:
    """Make Airflow's Spark hook close the pipe from which it reads the log of spark-submit.

    The hook leaves it to the garbage collector, which warns of it in whatever test is run then: of
    the raw file, because the hook and its pipe are part of a cycle.
    """
    from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook

    submit = SparkSubmitHook.submit

    def submit_and_close(hook: Any, *arguments: Any, **options: Any) -> None:
        try:
            submit(hook, *arguments, **options)
        finally:
            if hook._submit_sp is not None:  # noqa: SLF001 - it has no other name
                hook._submit_sp.stdout.close()  # noqa: SLF001

    patch.setattr(SparkSubmitHook, "submit", submit_and_close)


class Quotas:
    """The quotas that a broker stores, by "ENTITY KEY", written and read outside Git."""

    def __init__(self, broker: RunningBroker) -> None:
        self.cluster_id = broker.config.cluster_id
        text = f"bootstrap.servers={broker.bootstrap()}"
        self._connection = Connection.parse(text, name="behind", source="the test")

    def set(self, quotas: Mapping[str, float | None]) -> None:
        """Set quotas, or clear those whose value is None."""
        with open_cluster(self._connection, cluster_id=None) as cluster:
            for name, value in quotas.items():
                entity, _, key = name.rpartition(" ")
                write(cluster, {entity: {key: value}})

    def clear(self) -> None:
        """Clear everything."""
        with open_cluster(self._connection, cluster_id=None) as cluster:
            empty(cluster)

    def stored(self) -> dict[str, float]:
        """Return all quotas that the broker stores."""
        with open_cluster(self._connection, cluster_id=None) as cluster:
            return {f"{quota.entity} {quota.key}": quota.value for quota in cluster.describe()}
