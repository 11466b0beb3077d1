"""The demo, and the same parts left running to click through."""

from functools import partial
from pathlib import Path

import click


@click.command(
    epilog="""\b
Examples:
  quota-ops demo
  quota-ops demo --keep ./kept     report pages, runs, ledger and logs stay"""
)
@click.option(
    "--keep",
    metavar="FOLDER",
    type=click.Path(path_type=Path, file_okay=False),
    help="A new folder for everything that the demo makes; it is not removed at the end.",
)
def demo(keep: Path | None) -> None:
    """Watch a real cluster being brought to what Git says.

    Starts a Kafka and an Airflow of its own on this machine (loopback, free ports), lets Git and
    the cluster drift apart, plans, reconciles by DAG with Spark, reports drift, repairs it. It
    touches no cluster, run store or sandbox of yours, and leaves nothing behind. Needs Java 17.
    """
    from quota_ops.lab.demo.run import run_demo

    run_demo(keep)


@click.command(
    epilog="""\b
Examples:
  quota-ops up
  quota-ops plan demo
  quota-ops down"""
)
def up() -> None:
    """Start the sandbox broker and Airflow in the background.

    The DAGs are those of ./dags, else those of ./desired_state, else those of the demo cluster.
    A second call says where they run. Needs Java 17.
    """
    from quota_ops.lab.demo.up import start

    found = start(partial(click.echo, err=True))
    user, password = found.airflow.login
    click.echo(
        f"""\
{"started" if found.started else "running already"}; `quota-ops down` stops both

  Airflow     {found.airflow.address}
  login       {user} / {password}
  Kafka       {found.kafka}, connection demo
  run store   {found.run_store}

In the browser: Dags, reconcile_demo, Trigger. The first run needs a person's approval: give
default_touched as a guard to let pass, and a reason. The last line of the task report's log is the
report's path.
At a prompt: quota-ops plan demo"""
    )


@click.command(
    epilog="""\b
Examples:
  quota-ops down"""
)
def down() -> None:
    """Stop what `up` started. Quotas, runs and Airflow's history stay for the next start."""
    from quota_ops.lab.demo.up import stop

    click.echo("stopped" if stop() else "nothing was running")
