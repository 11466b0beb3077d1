"""Options of tasks: the defaults of quota-ops, and what a DAG file sets for its Airflow."""

import logging
from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta
from difflib import get_close_matches
from typing import Any, TypedDict

from airflow.sdk import DAG, get_current_context

from quota_ops.airflow.errors import RETRIES
from quota_ops.model.errors import InvalidInput

DEFAULT_ARGS: Mapping[str, Any] = {
    "owner": "quota-ops",
    "execution_timeout": timedelta(minutes=30),
    **RETRIES,
}
"""The `default_args` of every task, which those of a DAG file override one by one."""


class TaskOptions(TypedDict, total=False):
    """Options of one task, as Airflow's operators take them; they override `default_args`."""

    owner: str
    """Who owns the task."""
    queue: str
    """The queue of the Celery executor."""
    pool: str
    """The pool that the task takes its slots from. It must exist: Airflow waits for it forever."""
    pool_slots: int
    """How many slots it takes."""
    priority_weight: int
    """Its priority in the queue or pool."""
    executor: str
    """The executor that runs it, if Airflow has several."""
    executor_config: dict[str, Any]
    """Settings for the executor, for example `pod_override` for Kubernetes."""
    retries: int
    """How often it is retried after an error that may not occur again; others are not retried."""
    retry_delay: timedelta
    """How long it waits before the first retry."""
    max_retry_delay: timedelta
    """The longest wait before a retry."""
    execution_timeout: timedelta
    """The maximum duration of one attempt. Time spent waiting for an approval does not count."""
    max_active_tis_per_dag: int
    """How many runs of the DAG may execute it at the same time."""


Options = Mapping[str, TaskOptions]
"""The options of tasks by the name of the task."""


def check_task_options(given: Options | None, tasks: Collection[str]) -> Options:
    """Return the options of tasks, empty for None. Raises InvalidInput for an unknown name."""
    for task, options in (given or {}).items():
        _refuse_unknown("task_options", [task], tasks, "task")
        _refuse_unknown(
            f"task_options[{task!r}]", list(options), TaskOptions.__annotations__, "option"
        )
    return given or {}


def _refuse_unknown(place: str, names: Sequence[str], known: Collection[str], kind: str) -> None:
    for name in names:
        if name not in known:
            near = get_close_matches(str(name), known, n=1)
            hint = f"Did you mean {near[0]!r}? " if near else ""
            raise InvalidInput(
                f"{place} has an unknown {kind}: {name!r}",
                f"{hint}The {kind}s are {', '.join(known)}.",
            )


def add_callback(default_args: Mapping[str, Any], event: str, callback: Any) -> dict[str, Any]:
    """Return the option that calls `callback` after those that `default_args` has for an event."""
    found = default_args.get(event) or ()
    others = found if isinstance(found, Sequence) else [found]
    return {event: [*others, callback]}


DEFAULT_POOL = "default_pool"
"""The pool that every Airflow has."""


def explain_pools(dag: DAG) -> str:
    """Return a paragraph about the pools of a DAG, with the commands that create them."""
    return "".join(f"\n\n{hint}" for hint in _list_hints(dag))


def log_pools() -> None:
    """Log which pools the other tasks of this DAG need, and the commands that create them."""
    context: Any = get_current_context()
    for hint in _list_hints(context["dag"]):
        logging.getLogger(__name__).info("%s", hint)


def _list_hints(dag: DAG) -> list[str]:
    pools = sorted({task.pool for task in dag.tasks} - {DEFAULT_POOL})
    return [
        f"Tasks of this DAG wait for slots of the pool {pool}. If they stay scheduled, the pool "
        f"may not exist. Create it with: airflow pools set {pool} 16 quota-ops"
        for pool in pools
    ]
