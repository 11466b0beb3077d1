"""The command that takes rows out of the ledger."""

from typing import Any

import click

from quota_ops.cli import options, specification


@click.command(
    epilog="""\b
Examples:
  quota-ops release demo --from-ledger --names user=alice --reason 'search owns it now'
  quota-ops release demo --from-ledger --all --reason 'another repository took over'"""
)
@options.cluster_argument
@click.option("--from-ledger", is_flag=True, help="Let quotas be ours no longer.")
@specification.names
@specification.defaults
@specification.anyone
@click.option("--all", "everything", is_flag=True, help="Every quota that the ledger knows.")
@click.option("--reason", required=True, help="Why; it is recorded.")
@options.by
@options.desired_state
@options.run_store
@options.output_format
def release(
    *,
    cluster: str,
    from_ledger: bool,
    names: tuple[str, ...],
    defaults: tuple[str, ...],
    anyone: tuple[str, ...],
    everything: bool,
    **given: Any,
) -> None:
    """Let quotas be ours no longer, and leave them where they are.

    The cluster is not touched. What the ledger has forgotten reads as unmanaged: it is reported
    and left alone. What Git still describes becomes ours again by the next reconcile.
    """
    from quota_ops.cli.owning import Asking, release_rows, wanted
    from quota_ops.model.errors import InvalidInput

    if not from_ledger:
        raise InvalidInput("release needs to know what from", "Add --from-ledger.")
    release_rows(
        Asking.of(cluster, **given),
        wanted(names, defaults, anyone, everything=everything),
    )
