"""The pools of a DAG's tasks: Airflow lets a task wait forever if its pool does not exist."""

import logging
from typing import Any

from airflow.sdk import DAG, get_current_context

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
