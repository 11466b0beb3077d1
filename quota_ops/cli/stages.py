"""The commands that run stages."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from quota_ops.cli import options


@click.command(
    epilog="""\b
Examples:
  quota-ops check                        every cluster
  quota-ops check demo                   one cluster
  quota-ops check ./desired_state/demo   the same, by its path"""
)
@click.argument("clusters", nargs=-1, metavar="[CLUSTER]...")
@options.desired_state
@options.output_format
def check(clusters: tuple[str, ...], desired_state: Path, output: str) -> None:
    """Read the YAML of clusters; say every problem at once.

    Needs no broker and no Java. Problems are listed with file, line and column.
    """
    from quota_ops.cli.check import check_clusters

    check_clusters(clusters, desired_state, output)


def _stage_command(name: str, summary: str, example: str, *, writes: bool = False) -> click.Command:
    """A command that runs the stages up to one, or that one on an earlier run's folder."""

    def command(**given: Any) -> None:
        from quota_ops.cli.running import run_command

        run_command(name, **given)

    command.__doc__ = summary
    decorate: list[Callable[[Any], Any]] = [
        click.argument("cluster", required=False),
        options.desired_state,
        options.connection,
        options.run_store,
        options.run,
        options.commit,
        options.engine,
        options.allowing,
        options.output_format,
        options.detailed_exitcode,
    ]
    if writes:
        decorate.append(
            click.option(
                "--approve",
                metavar="DIGEST",
                help="Write only if the plan has this digest, as `plan` printed it.",
            )
        )
    wrapped: Any = command
    for decorator in reversed(decorate):
        wrapped = decorator(wrapped)
    return click.command(name, epilog=f"\b\nExamples:\n{example}")(wrapped)


diff = _stage_command(
    "diff",
    """Compare Git, the cluster and the ledger; list each row that differs and why.""",
    "  quota-ops diff demo\n  quota-ops diff demo --engine spark",
)
plan = _stage_command(
    "plan",
    """Show what would change, judged by guards and by the broker itself (validate-only).

    Nothing is written. The digest names the plan: give it to `reconcile --approve`.""",
    "  quota-ops plan demo\n"
    "  quota-ops plan demo --allow takeover --reason 'agreed in TEAM-12'\n"
    "  quota-ops plan demo --format json --detailed-exitcode",
)
validate = _stage_command(
    "validate",
    """Ask the broker whether it would accept every change (validate-only).""",
    "  quota-ops validate demo",
)
apply = _stage_command(
    "apply",
    """Write what the plan says, batch after batch; what is so already is not sent.""",
    "  quota-ops apply demo --approve 7f3a91c2\n"
    "  quota-ops apply --run RUN_FOLDER --approve 7f3a91c2    goes on where it stopped",
    writes=True,
)
verify = _stage_command(
    "verify",
    """Read back from every broker whether it holds what Git says. Writes nothing.""",
    "  quota-ops verify demo\n  quota-ops verify --run RUN_FOLDER",
)
report = _stage_command(
    "report",
    """Write the report of a run, or a drift report of a cluster. Writes nothing to the cluster.""",
    "  quota-ops report demo\n  quota-ops report --run RUN_FOLDER",
)
reconcile = _stage_command(
    "reconcile",
    """Make the cluster what Git says: all eight stages, read back and reported.""",
    "  quota-ops reconcile demo\n"
    "  quota-ops reconcile demo --approve 7f3a91c2\n"
    "  quota-ops reconcile --run RUN_FOLDER --approve 7f3a91c2    of an earlier plan\n"
    "  quota-ops reconcile demo --allow default_touched --reason 'agreed in TEAM-12'",
    writes=True,
)
