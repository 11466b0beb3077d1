"""The command that takes rows into the ledger."""

from pathlib import Path
from typing import Any

import click

from quota_ops.cli import options, specification


@click.command(
    epilog="""\b
Examples:
  quota-ops adopt demo --all --reason 'the ledger was lost'
  quota-ops adopt demo --names user=alice --reason 'ours since OPS-7'
  quota-ops adopt demo --names user=alice --any client-id --reason 'ours since OPS-7'"""
)
@options.cluster_argument
@specification.names
@specification.defaults
@specification.anyone
@click.option("--all", "everything", is_flag=True, help="Every quota that Git describes.")
@options.reason("Why; it is recorded.", required=True)
@options.by
@options.desired_state
@options.commit
@options.connection
@options.run_store
@options.output_format
def adopt(
    *,
    cluster: str,
    names: tuple[str, ...],
    defaults: tuple[str, ...],
    anyone: tuple[str, ...],
    everything: bool,
    connection_file: Path | None,
    **given: Any,
) -> None:
    """Make quotas that are already on the cluster ours.

    They enter the ledger as the cluster holds them, as if a run had put them there; the cluster is
    not touched. No guard asks about a takeover any more.
    One that Git does not describe is cleared by the next reconcile, so it has to be named; --all
    takes only what Git describes.
    """
    from quota_ops.cli.owning import Asking, adopt_rows, wanted

    adopt_rows(
        Asking.of(cluster, **given),
        connection_file,
        wanted(names, defaults, anyone, everything=everything),
    )
