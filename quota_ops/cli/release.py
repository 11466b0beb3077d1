"""The command that ends a hold, or takes rows out of the ledger."""

from typing import Any

import click

from quota_ops.cli import options, specification
from quota_ops.cli.idle_options import refuse_idle
from quota_ops.model.errors import InvalidInput


@click.command(
    epilog="""\b
Examples:
  quota-ops release demo --names user=alice
  quota-ops release demo --from-ledger --names user=alice --reason 'search owns it now'
  quota-ops release demo --from-ledger --all --reason 'another repository took over'"""
)
@options.cluster_argument
@refuse_idle("--commit", "A hold has no commit: leave it out.", without=("--from-ledger",))
@click.option(
    "--from-ledger",
    is_flag=True,
    help="Give up quotas that are ours, not a hold.",
)
@specification.names
@specification.defaults
@specification.anyone
@click.option(
    "--all", "everything", is_flag=True, help="With --from-ledger: every quota that it knows."
)
@options.reason("Why; it is recorded. Required with --from-ledger.")
@options.by
@options.desired_state
@options.commit
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
    """End a hold early, or give up quotas that are ours.

    A hold is named as it was made: `holds` lists them. The cluster is not touched by either;
    runs follow Git again, unless another hold or `protect` covers it. With --from-ledger the
    ledger forgets quotas, which then read as unmanaged: they are reported and left alone. What Git
    still describes becomes ours again by the next reconcile.
    """
    from quota_ops.cli.holding import Cluster, release_entities
    from quota_ops.cli.owning import Asking, release_rows, wanted

    who = wanted(names, defaults, anyone, everything=everything)
    if from_ledger:
        release_rows(Asking.of(cluster, **given), who)
    elif who is None:
        raise InvalidInput("--all is for --from-ledger", "A hold is named as it was made.")
    else:
        by, reason, _ = given.pop("by"), given.pop("reason"), given.pop("commit")
        release_entities(Cluster.of(cluster, **given), who, by=by, reason=reason)
