"""The commands that run stages."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import click

from quota_ops.cli import options, specification
from quota_ops.cli.idle_options import refuse_idle


@click.command(
    epilog="""\b
Examples:
  quota-ops check                        every cluster
  quota-ops check demo                   one cluster
  quota-ops check ./desired_state/demo   the same, by its path
  quota-ops check --strict               findings are problems too"""
)
@click.argument("clusters", nargs=-1, metavar="[CLUSTER]...")
@refuse_idle("CLUSTERS", "The run names its cluster: leave it out.", beside=("--run",))
@options.desired_state
@options.run
@click.option("--strict", is_flag=True, help="Exit with 2 on findings that nobody silenced, too.")
@options.output_format
def check(
    clusters: tuple[str, ...],
    desired_state: Path,
    run_folder: Path | None,
    output: str,
    *,
    strict: bool,
) -> None:
    """Read the YAML of clusters; say every problem at once.

    Needs no broker and no Java. Problems are listed with file, line and column; so are findings,
    what is valid, but probably not what was meant.
    """
    from quota_ops.cli.check import check_clusters, check_run

    if run_folder is None:
        check_clusters(clusters, desired_state, output, strict=strict)
    else:
        check_run(run_folder, desired_state, output, strict=strict)


_SHARED = (
    click.argument("cluster", required=False),
    options.desired_state,
    options.connection,
    options.run_store,
)
_COMPARING = (options.commit, options.engine)
_JUDGING = (options.allowing,)
_OFFLINE = (
    specification.actual,
    refuse_idle("--connection", "A snapshot is read, no cluster.", beside=("--actual",)),
)
_EXIT_CODE = (options.detailed_exitcode,)
_WRITING = (
    click.option(
        "--approve",
        metavar="DIGEST",
        help="Write only if the plan has this digest, as `plan` printed it.",
    ),
)
Decorators = tuple[Callable[[Any], Any], ...]
_GUARDS_SPEAK = "Guards speak in plan: quota-ops plan --run FOLDER --allow GUARD --reason TEXT."
_IDLE_ON_RUN = {
    "--allow": (("plan", "apply", "reconcile"), _GUARDS_SPEAK),
    "--reason": (("plan", "apply", "reconcile"), _GUARDS_SPEAK),
    "--by": (("plan", "apply", "reconcile"), _GUARDS_SPEAK),
    "--commit": ((), "A run keeps the commit that it was started at: leave out --commit."),
    "--engine": (("diff",), "It runs the diff, and that has been made: leave out --engine."),
    "--desired-state": ((), "A run keeps what was read: leave out --desired-state."),
    "--connection": (
        ("validate", "apply", "verify", "reconcile"),
        "This stage does not ask the cluster: leave out --connection.",
    ),
}
"""Which commands read an option on an earlier run too, and what to do on the others."""


def _idle_on_run(name: str, options_there: Sequence[str]) -> Iterator[Callable[[Any], Any]]:
    for option, (readers, remedy) in _IDLE_ON_RUN.items():
        if option in options_there and name not in readers:
            yield refuse_idle(option, remedy, beside=("--run",))


def _stage_command(
    name: str, summary: str, example: str, *more: Decorators, run: Any = options.run
) -> click.Command:
    """A command that runs the stages up to one, or that one on an earlier run's folder."""

    def command(**given: Any) -> None:
        from quota_ops.cli.running import run_command

        run_command(name, **given)

    command.__doc__ = summary
    wrapped: Any = command
    decorators = (*_SHARED, run, *(one for group in more for one in group), options.output_format)
    for decorator in reversed(decorators):
        wrapped = decorator(wrapped)
    there = [option for param in wrapped.__click_params__ for option in param.opts]
    for decorator in reversed(list(_idle_on_run(name, there))):
        wrapped = decorator(wrapped)
    return click.command(name, epilog=f"\b\nExamples:\n{example}")(wrapped)


diff = _stage_command(
    "diff",
    """List what differs between Git, the cluster and the ledger.

    Each row has its kind, which says who moved: Git, the cluster, or both.""",
    "  quota-ops diff demo\n  quota-ops diff demo --engine spark --detailed-exitcode\n"
    "  quota-ops diff demo --actual snapshot.jsonl    without the cluster",
    _COMPARING,
    _OFFLINE,
    _EXIT_CODE,
)
plan = _stage_command(
    "plan",
    """Show what would change, judged by guards and by the broker.

    The broker is asked about every change (validate-only); nothing is written. The digest names
    the plan: give it to `reconcile --approve`.""",
    "  quota-ops plan demo\n"
    "  quota-ops plan demo --allow takeover --reason 'agreed in TEAM-12'\n"
    "  quota-ops plan demo --format json --detailed-exitcode\n"
    "  quota-ops plan demo --actual snapshot.jsonl    without the cluster, so not validated",
    _COMPARING,
    _OFFLINE,
    _JUDGING,
    _EXIT_CODE,
)
validate = _stage_command(
    "validate",
    """Ask the broker whether it would accept every change.

    With a CLUSTER it does what `plan` does; with --run it asks again about an earlier plan.""",
    "  quota-ops validate demo\n  quota-ops validate --run FOLDER",
    _COMPARING,
    _JUDGING,
    _EXIT_CODE,
)
apply = _stage_command(
    "apply",
    """Write what the plan says, batch after batch.

    What the cluster holds already is not sent, so it may be run again after anything.""",
    "  quota-ops apply demo --approve DIGEST\n"
    "  quota-ops apply --run FOLDER --approve DIGEST    goes on where it stopped",
    _COMPARING,
    _JUDGING,
    _WRITING,
)
verify = _stage_command(
    "verify",
    """Read back from every broker whether it holds what Git says.

    Writes nothing to the cluster. On the run folder of an apply it also writes the ledger.""",
    "  quota-ops verify demo\n  quota-ops verify --run FOLDER",
)
report = _stage_command(
    "report",
    """Write the report of a run, or of how a cluster stands now.

    It is left in the run's folder as HTML, Markdown, text and JSON. Writes nothing to the
    cluster.""",
    "  quota-ops report demo\n  quota-ops report --run FOLDER",
    _COMPARING,
    _JUDGING,
    _EXIT_CODE,
)
reconcile = _stage_command(
    "reconcile",
    """Make the cluster what Git says: plan, apply, verify, report.

    With --approve only the plan of that digest is written, without it the one just made. With
    --run it writes the plan of an earlier command, or goes on where that stopped. A plan that is
    made anew passes no guard that --allow does not name.""",
    "  quota-ops reconcile demo\n"
    "  quota-ops reconcile demo --approve DIGEST\n"
    "  quota-ops reconcile --run FOLDER --approve DIGEST\n"
    "  quota-ops reconcile demo --allow default_touched --reason 'agreed in TEAM-12'",
    _COMPARING,
    _JUDGING,
    _WRITING,
    run=options.on_run("Apply, verify and report"),
)
