"""The command `demo`: a tour on this machine."""

from pathlib import Path

import click

from quota_ops.cli import options


@options.command("""
  quota-ops demo
  quota-ops demo --keep ./kept     report pages, runs, ledger and logs stay""")
@click.option(
    "--keep",
    metavar="FOLDER",
    type=click.Path(path_type=Path, file_okay=False),
    help="Keep everything that the demo creates in this new folder.",
)
def demo(keep: Path | None) -> None:
    """Play a tour on a real Kafka and Airflow, and clean up.

    Starts its own Kafka and Airflow on this machine (loopback, free ports), changes Git
    and the cluster, plans, reconciles with Spark in a DAG, reports drift and repairs it. It
    uses none of your clusters, run stores or sandboxes, and leaves nothing behind. Needs Java
    17.
    """
    from quota_ops.lab.demo.run import run_demo

    run_demo(keep)
