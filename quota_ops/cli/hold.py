"""The commands that hold entities, and that list who is held."""

from pathlib import Path
from typing import Any

import click

from quota_ops.cli import options, specification


@click.command(
    epilog="""\b
Examples:
  quota-ops hold demo --names user=alice --until 2h --reason 'a load test'
  quota-ops hold demo --defaults user --until 2026-11-21T07:00+01:00 --reason INC-31
  quota-ops hold demo --any client-id --until '2026-11-23 08:00 Europe/Berlin' --reason INC-31"""
)
@options.cluster_argument
@specification.names
@specification.defaults
@specification.anyone
@click.option(
    "--until",
    required=True,
    metavar="TIME",
    help="A length of time (30m, 2h, 1d12h), or a time with its zone.",
)
@options.reason("Why; every report says it.", required=True)
@options.by
@options.desired_state
@options.run_store
@options.output_format
def hold(cluster: str, **given: Any) -> None:
    """Keep runs from writing some entities for a while.

    Neither Git nor the cluster is touched: the hold is kept in the run store. Plans and reports
    show what is held, and until when. Names mean exactly the entity that they
    say; all its keys are held. To hold it longer or shorter, hold it again.
    """
    from quota_ops.cli.holding import Cluster, hold_entities
    from quota_ops.model.specification import parse_exactly

    names, defaults, anyone = (given.pop(name) for name in ("names", "defaults", "anyone"))
    until, by, reason = (given.pop(name) for name in ("until", "by", "reason"))
    who = parse_exactly(names, defaults, anyone)
    hold_entities(Cluster.of(cluster, **given), who, until, by=by, reason=reason)


@click.command(
    epilog="""\b
Examples:
  quota-ops holds demo
  quota-ops holds demo --all --format json"""
)
@options.cluster_argument
@click.option("--all", "everything", is_flag=True, help="Also what has ended, and releases.")
@options.desired_state
@options.run_store
@options.output_format
def holds(
    *, cluster: str, everything: bool, desired_state: Path, run_store: str | None, output: str
) -> None:
    """List what is held, until when, by whom and why."""
    from quota_ops.cli.holding import Cluster, list_holds

    list_holds(Cluster.of(cluster, desired_state, run_store, output), everything=everything)
