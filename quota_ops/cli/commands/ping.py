"""The command `ping`: test a connection, or the run store."""

from typing import TYPE_CHECKING

import click

from quota_ops.cli import options
from quota_ops.cli.console import show_result
from quota_ops.model.errors import InvalidInput

if TYPE_CHECKING:
    from quota_ops.cli.session import Session

_OF_CLUSTER = "Leave it out: only a test of a cluster uses it."


@options.command("""
  quota-ops ping demo
  quota-ops ping demo --connection ./admin.properties
  quota-ops ping demo --format json
  quota-ops ping --run-store s3://runs/quota-ops
  quota-ops ping --run-store                        the one in QUOTA_OPS_RUN_STORE

\b
Exit codes for a cluster: 0 all is well, 1 a permission is missing, 3 a broker does not respond or
is fenced. For a run store: 0 all is well, 1 a permission is missing, 2 it cannot be used.""")
@click.argument("cluster", required=False)
@options.with_session
@options.desired_state
@options.connection
@click.option(
    "--run-store",
    metavar="[FOLDER]",
    is_flag=False,
    flag_value="",
    help="Where runs and ledgers are kept; without a CLUSTER, this store is tested.  "
    "[env: QUOTA_OPS_RUN_STORE; default: in your home]",
)
@options.output_format
@options.refuse_idle("--desired-state", _OF_CLUSTER, without=("CLUSTER",))
@options.refuse_idle("--connection", _OF_CLUSTER, without=("CLUSTER",))
def ping(session: "Session", output: str) -> None:
    """Test a connection or the run store, and list your permissions.

    For a CLUSTER, shows each broker, its version and its response time; the principal that you
    authenticate as, which quota operations it is authorized to run, and the command that grants
    what is missing. Changes nothing. Reads cluster.yaml for the connection and the cluster id, and
    the brokers of the last verified run.

    For a run store, shows which operations you are authorized to run, how long they take, and
    whether only one of several writers can create the same file. Deletes what it writes.
    """
    (_ping_store if session.cluster is None else _ping_cluster)(session, output)


def _ping_store(session: "Session", output: str) -> None:
    from quota_ops.report.screens.ping import store_ping_json, store_ping_screen
    from quota_ops.store.places.ping import ping_store

    if session.run_store is None:
        raise InvalidInput("ping needs a CLUSTER or --run-store", "See quota-ops ping --help.")
    pinged = ping_store(session.store)
    show_result(
        output, text=lambda: store_ping_screen(pinged), json=lambda: store_ping_json(pinged)
    )
    raise click.exceptions.Exit(pinged.exit_code)


def _ping_cluster(session: "Session", output: str) -> None:
    from quota_ops.kafka.ping import ping as ping_cluster
    from quota_ops.report.screens.ping import as_json, ping_screen
    from quota_ops.stages.describe.absent_brokers import read_known_brokers

    policy, connection = session.policy, session.find_connection()
    pinged = ping_cluster(connection, policy, read_known_brokers(session.records))
    show_result(
        output,
        text=lambda: ping_screen(policy.cluster, pinged),
        json=lambda: as_json(policy.cluster, pinged),
    )
    raise click.exceptions.Exit(pinged.exit_code)
