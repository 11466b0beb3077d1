"""The command that stops what `up` started."""

import click

from quota_ops.cli import options


@options.command("""
  quota-ops down""")
def down() -> None:
    """Stop what `up` started.

    Quotas, runs and Airflow's history are kept for the next start. A sandbox that `sandbox start`
    started runs on.
    """
    from quota_ops.lab.demo.up import stop_services
    from quota_ops.lab.kafka.sandbox import find_sandbox

    click.echo("stopped" if stop_services() else "nothing was running")
    if find_sandbox().running:
        click.echo("The sandbox runs on: `up` did not start it. To stop it: quota-ops sandbox stop")
