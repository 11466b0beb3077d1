"""The DAGs of a repository with many clusters: ids with a prefix, spread schedules, a pool."""

from datetime import timedelta
from pathlib import Path

from quota_ops.airflow import build_dags

globals().update(
    build_dags(
        desired_state=Path(__file__).parents[1] / "desired_state",
        dag_id_prefix="quotas_",
        schedule_jitter=timedelta(minutes=20),
        default_args={"pool": "quotas"},
    )
)
