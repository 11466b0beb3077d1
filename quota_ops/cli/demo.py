"""The command that shows all of it at work on this machine."""

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
