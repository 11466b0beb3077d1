"""A DAG of your own that reconciles two clusters between two of your own tasks."""

from pathlib import Path

from airflow.sdk import DAG, task

from quota_ops.airflow import QuotaReconcile, guard_params


@task
def create_users() -> None:
    """Create the Kafka users of new teams here."""


@task
def announce() -> None:
    """Tell the teams here that their quotas apply."""


with DAG(
    "onboard_teams",
    schedule="@daily",
    catchup=False,
    max_active_runs=1,
    default_args={"owner": "platform"},
    params=guard_params(),
):
    created, announced = create_users(), announce()
    for cluster in ("eu", "us"):
        quotas = QuotaReconcile(
            cluster=cluster,
            desired_state=Path(__file__).parents[1] / "desired_state",
            task_options={"diff": {"pool": "spark"}},
        )
        created >> quotas >> announced
