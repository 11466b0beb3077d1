"""What every DAG of ours has in common."""

from datetime import timedelta
from typing import Any

from airflow.sdk import DAG

from quota_ops.airflow.endings import RETRIES

TASK_ARGUMENTS = {"owner": "quota-ops", "execution_timeout": timedelta(minutes=30), **RETRIES}


LONGEST = timedelta(hours=2)
"""How long a run may take that waits for nobody."""


def one_at_a_time(
    dag_id: str, *, schedule: str | None, longest: timedelta = LONGEST, **more: Any
) -> DAG:
    """A DAG whose runs follow one another, none of them late, and none without an end."""
    return DAG(
        dag_id,
        schedule=schedule,
        catchup=False,
        max_active_runs=1,
        dagrun_timeout=longest,
        default_args=TASK_ARGUMENTS,
        **more,
    )
