"""One run of a DAG in a real Airflow, followed to its end by the REST API."""

import time
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from quota_ops.demo.telling import Update
from quota_ops.report.screen import Line, Span, Tone
from quota_ops.sandbox.airflow_api import AirflowApi

_ENDED = {"success", "failed"}
_LOOK_EVERY = 0.3


class Task(NamedTuple):
    """A task of a run: its name, how it ended, and the seconds that it ran."""

    name: str
    state: str
    seconds: float


class DagRun(NamedTuple):
    """How a run ended, its tasks in the order of their start, and how long all of it took."""

    state: str
    tasks: tuple[Task, ...]
    seconds: float

    def cells(self) -> Iterator[Line]:
        """The tasks, and what Airflow itself took between them; below `TASKS`."""
        between = self.seconds - sum(one.seconds for one in self.tasks)
        for one in (*self.tasks, Task("between the tasks", "", between)):
            tone = Tone.OK if one.state == "success" else Tone.REFUSAL
            yield Span(one.name), Span(one.state, tone), Span(f"{one.seconds:6.1f} s")


TASKS = ("task", "state", "  took")


def run_dag(api: AirflowApi, dag_id: str, params: Mapping[str, Any], update: Update) -> DagRun:
    """Trigger a DAG and follow the run; `update` is told which tasks are done and which runs."""
    api.wait_for_dag(dag_id)
    began = time.monotonic()
    run = api.trigger(dag_id, **params)
    while (state := api.state(dag_id, run)) not in _ENDED:
        update(_so_far(api.tasks(dag_id, run)))
        time.sleep(_LOOK_EVERY)
    seconds = time.monotonic() - began
    instances = sorted(api.tasks(dag_id, run), key=lambda one: str(one["start_date"]))
    tasks = (Task(_name(one), one["state"], one["duration"] or 0.0) for one in instances)
    return DagRun(state, tuple(tasks), seconds)


def _so_far(instances: list[dict[str, Any]]) -> str:
    ended = sum(one["state"] in _ENDED for one in instances)
    running = [_name(one) for one in instances if one["state"] == "running"]
    return f"{ended} of {len(instances)} tasks done  {', '.join(running)}"


def _name(task: Mapping[str, Any]) -> str:
    mapped = task["rendered_map_index"] if task["map_index"] >= 0 else ""
    return f"{task['task_id']} {mapped}".rstrip()
