"""The DAGs of this repository: one reconcile DAG per cluster, one drift DAG for all."""

from pathlib import Path

from quota_ops.airflow import build_dags

globals().update(build_dags(desired_state=Path(__file__).parents[1] / "desired_state"))
