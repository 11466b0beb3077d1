"""The command that stops what `up` started."""

import click


@click.command(
    epilog="""\b
Examples:
  quota-ops down"""
)
def down() -> None:
    """Stop what `up` started.

    Quotas, runs and Airflow's history are kept for the next start.
    """
    from quota_ops.lab.demo.up import stop_services

    click.echo("stopped" if stop_services() else "nothing was running")
