"""The demo's folder, with the Kafka and Airflow that run in it, and its actions."""

import os
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import Struct

from quota_ops.jvm.pinned_jars import Progress
from quota_ops.kafka.connection import find_connection
from quota_ops.lab.airflow.server import AirflowApi, RunningAirflow, local_bundle, start_airflow
from quota_ops.lab.demo import month
from quota_ops.lab.demo.by_hand import ByHand, set_by_hand
from quota_ops.lab.demo.narration import Narration, Update
from quota_ops.lab.demo.repository import Repository
from quota_ops.lab.kafka.broker import RunningBroker, start_broker
from quota_ops.lab.kafka.config import BrokerConfig
from quota_ops.lab.kafka.sandbox import DEMO_CLUSTER_ID
from quota_ops.lab.process import read_end
from quota_ops.lab.spark_server import SparkServer, start_spark_server
from quota_ops.model.errors import ClusterTrouble, InvalidInput, Refused
from quota_ops.model.runs.report import Report
from quota_ops.model.text import counted
from quota_ops.report.outline.formats import duration
from quota_ops.report.outline.layout import Line, Span, Tone, line
from quota_ops.stages.report.run_report import read_report
from quota_ops.store.places.run_store import ENVIRONMENT, RunStore, find_run_store, open_place
from quota_ops.store.run.names import LAST, find_run

_ENDED = {"success", "failed"}
_POLL_SECONDS = 1.0
_LONGEST = 300.0
"""The most seconds that a busy machine may take to load a DAG, or to run a task."""
_TAIL_LINES = 12
TASKS = ("task", "state", "  took")
"""The headings above `DagRun.cells`."""


class Task(NamedTuple):
    """A task of a run: its name, its final state, and its duration in seconds."""

    name: str
    state: str
    seconds: float


class DagRun(NamedTuple):
    """The state of a run, its tasks in the order of their start, and its total duration.

    `verified` is how many seconds after the trigger the task verify ended, if the run has one.
    `trouble` is the end of the log of the first task that failed.
    """

    state: str
    tasks: tuple[Task, ...]
    seconds: float
    verified: float | None
    trouble: str

    def cells(self) -> Iterator[Line]:
        """Yield the cells of each task, and of the time that Airflow took between the tasks."""
        between = self.seconds - sum(task.seconds for task in self.tasks)
        for task in (*self.tasks, Task("between the tasks", "", between)):
            tone = Tone.OK if task.state == "success" else Tone.REFUSAL
            yield Span(task.name), Span(task.state, tone), Span(f"{task.seconds:6.1f} s")


def run_dag(api: AirflowApi, dag_id: str, params: Mapping[str, Any], update: Update) -> DagRun:
    """Trigger a DAG and wait for the run; `update` gets how many tasks are done and which run.

    Raises ClusterTrouble when Airflow does not respond, or no task ends for too long.
    """
    api.wait_for_dag(dag_id, _LONGEST)
    return _wait_for_run(api, dag_id, api.trigger(dag_id, **params), update)


def _wait_for_run(api: AirflowApi, dag_id: str, run: str, update: Update) -> DagRun:
    began, triggered = time.monotonic(), time.time()
    shown, changed = "", began
    while (state := api.read_state(dag_id, run)) not in _ENDED:
        progress = _format_progress(api.list_tasks(dag_id, run))
        update(progress)
        time.sleep(_POLL_SECONDS)
        if progress != shown:
            shown, changed = progress, time.monotonic()
        elif time.monotonic() - changed > _LONGEST:
            raise ClusterTrouble(
                f"the run of {dag_id} is {state}, and nothing changed for {_LONGEST:.0f} s: "
                f"{progress}"
            )
    seconds = time.monotonic() - began
    instances = sorted(
        api.list_tasks(dag_id, run), key=lambda instance: str(instance["start_date"])
    )
    tasks = (
        Task(instance["task_id"], instance["state"], instance["duration"] or 0.0)
        for instance in instances
    )
    ends = (
        instance["end_date"]
        for instance in instances
        if instance["task_id"] == "verify" and instance["end_date"]
    )
    verified = next((datetime.fromisoformat(end).timestamp() - triggered for end in ends), None)
    failed = [instance for instance in instances if instance["state"] == "failed"]
    trouble = _read_log_end(api, dag_id, run, failed[0]) if failed else ""
    return DagRun(state, tuple(tasks), seconds, verified, trouble)


def _read_log_end(api: AirflowApi, dag_id: str, run: str, task: Mapping[str, Any]) -> str:
    log = api.read_log(dag_id, run, task["task_id"], task["try_number"])
    return "\n".join(
        [f"the end of the log of {task['task_id']}:", *log.splitlines()[-_TAIL_LINES:]]
    )


def _format_progress(instances: list[dict[str, Any]]) -> str:
    ended = sum(instance["state"] in _ENDED for instance in instances)
    running = [instance["task_id"] for instance in instances if instance["state"] == "running"]
    return f"{ended} of {counted(len(instances), 'task')} done  {', '.join(running)}"


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
        if found := RunningAirflow.find(folder):
            found.stop()
        if has_started:
            return


class StoryFailed(Refused):
    """A step of the demo did not have the result that its text describes."""

    def __init__(self, message: str) -> None:
        super().__init__(
            f"the demo failed: {message}",
            "If the machine was busy, run it again. With --keep FOLDER, runs and logs are kept.",
        )


def expect(claim: object, otherwise: str) -> None:
    """Raise StoryFailed with the message `otherwise` if the claim is false."""
    if not claim:
        raise StoryFailed(otherwise)


class Lab(Struct, frozen=True):
    """The home of the demo, its narration, and the Airflow that is starting."""

    home: Home
    narration: Narration
    airflow: Future[RunningAirflow]

    def set_by_hand(self, *quotas: ByHand) -> None:
        """Change quotas of the cluster outside Git."""
        set_by_hand(find_connection("demo", file=self.home.connection), quotas)

    def run_command(self, *arguments: str, exit_code: int = 0, shown: bool = True) -> None:
        """Run `quota-ops ARGUMENTS` in the repository. Raises StoryFailed for another exit code."""
        self.narration.show_text(f"$ quota-ops {shlex.join(arguments)}", Tone.STRONG)
        ended = subprocess.run(
            [sys.executable, "-m", "quota_ops", *arguments],
            cwd=self.home.repository.root,
            env=_copy_environment() | self.home.environment,
            stdout=None if shown else subprocess.DEVNULL,
            check=False,
        )
        self.narration.show_screen(line())
        expect(
            ended.returncode == exit_code,
            f"quota-ops {arguments[0]} exited with {ended.returncode}, not {exit_code}",
        )

    def play_month(self) -> None:
        """Run quota-ops daily for a month before today. Raises StoryFailed if a run fails."""
        with self.narration.show_wait("Playing the month") as update:
            playing = subprocess.Popen(
                [sys.executable, "-m", month.__name__],
                cwd=self.home.repository.root,
                env=_copy_environment() | self.home.environment,
                stdout=subprocess.PIPE,
                text=True,
            )
            with playing:
                try:
                    for day in playing.stdout or ():
                        update(day.strip())
                except BaseException:
                    playing.kill()  # otherwise its next day ends in a traceback
                    raise
        expect(playing.returncode == 0, "a run of the month failed")

    def run_dag(self, dag_id: str, **params: Any) -> None:
        """Run a DAG to its end and show its tasks. Raises StoryFailed when the run fails."""
        with self.narration.show_wait(f"Running the DAG {dag_id}") as update:
            airflow = self.airflow.result()
            try:
                run = run_dag(airflow.api, dag_id, params, update)
            except ClusterTrouble as trouble:
                raise StoryFailed(f"{trouble.message}\n{read_end(airflow.log)}") from trouble
        self.narration.show_table(TASKS, run.cells())
        if run.verified is not None:
            took = f"Verified {duration(run.verified)} after the trigger, with a warm Spark."
            self.narration.show_text(took)
        expect(run.state == "success", f"the run of {dag_id} is {run.state}; {run.trouble}")

    def read_last_run(self) -> Report:
        """Return the report of the cluster's last run."""
        return read_report(find_run(RunStore(open_place(self.home.store)), f"demo/{LAST}"))


def _copy_environment() -> dict[str, str]:
    """Return the environment without the variables for the user's clusters and run store."""
    return {name: value for name, value in os.environ.items() if not name.startswith("QUOTA_OPS_")}
