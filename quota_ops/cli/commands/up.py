"""The command `up`: keep the sandbox broker, Spark and Airflow running in the background."""

from functools import partial
from pathlib import Path

import click

from quota_ops.cli import options

_FIRST_RUN = """\
On an empty sandbox, a guard blocks the first run of the demo: enter default_touched as the guard
to override, and a reason. On one with quotas, enter the guards that the form names."""


@options.command("""
  quota-ops up
  quota-ops plan demo
  quota-ops down""")
def up() -> None:
    """Start the sandbox broker, Spark and Airflow in the background.

    Runs the DAGs in ./dags, else those of ./desired_state, else those of the demo cluster, only
    when you trigger them: their schedules are off. Uses the sandbox that runs, if one does. A
    second call prints where they run. Needs Java 17 and the extra [airflow].
    """
    from quota_ops.lab.demo.up import start_services

    found = start_services(partial(click.echo, err=True))
    user, password = found.airflow.login
    clusters = [path.parent.name for path in Path("desired_state").glob("*/cluster.yaml")]
    is_demo = not clusters or "demo" in clusters
    cluster = "demo" if is_demo else clusters[0] if len(clusters) == 1 else "CLUSTER"
    first = f"\n{_FIRST_RUN}" if is_demo else ""
    stops = "everything" if found.owns_sandbox else "Spark and Airflow; the sandbox ran before"
    click.echo(
        f"""\
{"started" if found.started else "running already"}; `quota-ops down` stops {stops}

  Airflow     {found.airflow.address}
  login       {user} / {password}
  Kafka       {found.kafka}, connection demo
  Spark       {found.spark}, Spark Connect
  run store   {found.run_store}

In the browser: Dags, reconcile_{cluster}, Trigger. No schedule starts a run here. The task report
has a button Report; Quotas, in the navigation, has the reports of the DAG drift.{first}
At a prompt: quota-ops plan {cluster}"""
    )
