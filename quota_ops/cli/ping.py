"""The command `ping`: test the connection and the permissions."""

import json
from pathlib import Path

import click

from quota_ops.cli import options


@click.command(
    epilog="""\b
Examples:
  quota-ops ping demo
  quota-ops ping demo --connection ./admin.properties
  quota-ops ping demo --format json

\b
Exit codes: 0 all is well, 1 a permission is missing, 3 a broker does not respond or is fenced."""
)
@options.cluster_argument
@options.desired_state
@options.connection
@options.run_store
@options.output_format
def ping(
    cluster: str,
    desired_state: Path,
    connection_file: Path | None,
    run_store: str | None,
    output: str,
) -> None:
    """Test the connection, and list what you are authorized to do.

    Shows each broker, its version and its response time; the principal that you authenticate
    as, which quota operations it is authorized to run, and the command that grants what is
    missing. Changes nothing. Reads cluster.yaml for the connection and the cluster id, and the
    brokers of the last verified run.
    """
    from quota_ops.cli.console import TEXT, show_screen
    from quota_ops.desired.read import find_cluster, read_policy
    from quota_ops.kafka.connection import find_connection
    from quota_ops.kafka.ping import ping as ping_cluster
    from quota_ops.report.ping import as_json, ping_screen
    from quota_ops.stages.describe import read_known_brokers
    from quota_ops.store.run_store import find_run_store

    policy = read_policy(find_cluster(cluster, desired_state))
    found = find_connection(policy.connection, file=connection_file)
    known = read_known_brokers(find_run_store(run_store).ledger(policy.cluster_id))
    pinged = ping_cluster(found, policy, known)
    if output == TEXT:
        show_screen(ping_screen(policy.cluster, pinged))
    else:
        click.echo(json.dumps(as_json(policy.cluster, pinged), ensure_ascii=False, indent=1))
    raise click.exceptions.Exit(pinged.exit_code)
