"""A run of a DAG in a real Airflow, watched by the REST API until it ends."""

import time
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from quota_ops.lab.airflow.server import AirflowApi
from quota_ops.lab.demo.narration import Update
from quota_ops.model.errors import ClusterTrouble
from quota_ops.model.text import counted
from quota_ops.report.outline.layout import Line, Span, Tone

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
