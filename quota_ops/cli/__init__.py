"""The command line: a folder of commands, each named as it is typed, and what they share."""

import json
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from importlib import import_module
from io import TextIOWrapper
from itertools import pairwise
from keyword import iskeyword
from typing import Any

import click

from quota_ops.cli.interrupt import exit_code, format_interrupt, raise_on_signals
from quota_ops.model.errors import (
    InvalidDesiredState,
    InvalidInput,
    QuotaOpsError,
    Unexpected,
    find_limit,
)

COMMANDS = {
    "check": "Check the YAML files and list every problem.",
    "explain": "Show what a line of a file, an entity or a cluster becomes.",
    "ping": "Test a connection or the run store, and list your permissions.",
    "describe": "Show the quotas that a cluster stores.",
    "resolve": "Show which limit applies to a client, and why.",
    "inventory": "Write the clients that a cluster knows, as a first inventory.",
    "diff": "List the differences between Git, the cluster and the ledger.",
    "plan": "Show what would change, checked by guards and by the broker.",
    "effects": "Show which clients a plan would limit, cut or raise.",
    "validate": "Let the broker validate every change.",
    "apply": "Write the changes of a plan, batch by batch.",
    "verify": "Check that every broker stores what Git declares.",
    "review": "Review what a branch changes, for its pull request.",
    "report": "Write the report of a run, or of a cluster's current drift.",
    "reconcile": "Make the cluster match Git: plan, apply, verify, report.",
    "alter": "Change quotas once, without Git.",
    "accept": "Accept drift: write what the cluster stores into the YAML files.",
    "hold": "Pause changes to some entities until a given time.",
    "holds": "List the holds: until when, by whom and why.",
    "adopt": "Take over quotas that already exist on the cluster.",
    "release": "End a hold early, or give up managed quotas.",
    "rollback": "Plan the rollback of an earlier run.",
    "runs": "List the latest runs, their status and who approved them.",
    "show": "Show the report of an earlier run.",
    "history": "Show what happened to quotas over time, when and by whom.",
    "backtest": "Show which past plans the guards of a policy would have blocked.",
    "usage": "Show what clients use, beside their limits.",
    "suggest": "Suggest limits by what clients used, as a patch of the YAML.",
    "record": "Store what clients used on past days in the run store.",
    "metrics": "Write the state of clusters as metrics for Prometheus.",
    "prune": "Remove old runs from the run store.",
    "import": "Write YAML files from the quotas of a cluster or another tool.",
    "init": "Create a repository for your quotas.",
    "schema": "Print the JSON Schema of the YAML files or of the audit log.",
    "findings": "Explain the findings of check and plan.",
    "sandbox": "Run a real Kafka broker on this machine to try things out.",
    "demo": "Play a tour on a real Kafka and Airflow, and clean up.",
    "up": "Start the sandbox broker, Spark and Airflow in the background.",
    "down": "Stop what `up` started.",
}
"""Each command with its line in `--help`, in the order of `--help`."""
_IN_STAGES = {"diff", "plan", "validate", "apply", "verify", "report", "reconcile"}
"""The commands of the module `stages`; all others have a module of their name."""

_VERBOSE = "quota_ops.verbose"


def _add_verbose(command: click.Command) -> None:
    """Add --verbose to a command and its subcommands."""
    if all(param.name != "verbose" for param in command.params):
        command.params.append(
            click.Option(
                ["--verbose"],
                is_flag=True,
                expose_value=False,
                callback=_note_verbose,
                help="Log what happens to stderr, and print the traceback of an unexpected error.",
            )
        )
    if isinstance(command, click.Group):
        for subcommand in command.commands.values():
            _add_verbose(subcommand)


def _note_verbose(ctx: click.Context, _option: click.Parameter, value: bool) -> None:  # noqa: FBT001
    if value and not ctx.meta.get(_VERBOSE):
        from quota_ops.cli.console import log_to_stderr

        ctx.meta[_VERBOSE] = True
        ctx.with_resource(log_to_stderr())


class Commands(click.Group):
    """Imports the module of a command only to run the command or to show its own help."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands, in the order of `COMMANDS`."""
        del ctx
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return a command; None if there is no command of that name."""
        del ctx
        if cmd_name not in COMMANDS:
            return None
        name = f"{cmd_name}_" if iskeyword(cmd_name) else cmd_name
        module = "stages" if name in _IN_STAGES else name
        command: click.Command = getattr(import_module(f"quota_ops.cli.commands.{module}"), name)
        _add_verbose(command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands for `--help`, without importing them."""
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that was typed; the error for an unknown one suggests a similar name."""
        if args and not args[0].startswith("-") and args[0] not in COMMANDS:
            near = get_close_matches(args[0], COMMANDS, n=1)
            meant = f" Did you mean {near[0]}?" if near else ""
            ctx.fail(f"unknown command {args[0]!r}.{meant}")
        return super().resolve_command(ctx, args)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the options before the command's name."""
        with _showing_usage_errors():
            return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; show an error of quota-ops without a traceback, and exit with its code."""
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, TextIOWrapper):  # which cannot encode every name
                stream.reconfigure(errors="backslashreplace")
        try:
            with raise_on_signals(), _showing_usage_errors():
                return super().invoke(ctx)
        except KeyboardInterrupt as error:
            click.echo(format_interrupt(error), err=True)
            ctx.exit(exit_code(error))
        except (click.ClickException, click.Abort, click.exceptions.Exit):
            raise
        except Exception as error:  # noqa: BLE001 - some are unexpected
            limit = find_limit(error)
            known = error if isinstance(error, QuotaOpsError) else Unexpected(error)
            known = known if limit is None else Unexpected(limit)
            if isinstance(known, Unexpected) and ctx.meta.get(_VERBOSE):
                traceback.print_exception(error)
            show_error(known)
            ctx.exit(known.exit_code)


def show_error(error: QuotaOpsError) -> None:
    """Show an error on stderr: red on a terminal, and as JSON with `--format json`."""
    if _wants_json():
        values = {"error": error.message, "remedy": error.remedy, "exit_code": error.exit_code}
        click.echo(json.dumps(values), err=True)
        return
    from quota_ops.cli.console import show_screen
    from quota_ops.report.outline.layout import Tone, line
    from quota_ops.report.screens.plan import problems_screen

    if isinstance(error, InvalidDesiredState):
        show_screen(problems_screen(error), sys.stderr)
        return
    first, *rest = str(error).split("\n")
    show_screen((line(first, Tone.REFUSAL), *map(line, rest)), sys.stderr)


@contextmanager
def _showing_usage_errors() -> Iterator[None]:
    """Leave usage errors to click; with `--format json`, show them as JSON like other errors."""
    try:
        yield
    except click.UsageError as error:
        if not _wants_json():
            raise
        where = error.ctx.command_path if error.ctx else "quota-ops"
        show_error(InvalidInput(error.format_message(), f"See {where} --help."))
        raise click.exceptions.Exit(InvalidInput.exit_code) from None


def _wants_json() -> bool:
    arguments = sys.argv[1:]
    return "--format=json" in arguments or any(
        pair == ("--format", "json") for pair in pairwise(arguments)
    )


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="""\b
Start here:
  quota-ops demo                  a tour on a real Kafka and Airflow
  quota-ops init my-quotas        create a repository for your quotas
  quota-ops check                 check the YAML files
  quota-ops plan CLUSTER          show what would change; nothing is written
  quota-ops reconcile CLUSTER     apply the changes and verify them

\b
Exit codes: 0 done, 1 refused, verification failed or outcome unknown, 2 invalid input,
3 cluster error, 4 differences exist (only with --detailed-exitcode), 5 unexpected error,
6 something could not be judged, 7 an unmanaged quota overrides one of Git.""",
)
@click.version_option(package_name="quota-ops", prog_name="quota-ops")
def main() -> None:
    """Manage Apache Kafka client quotas from Git.

    CLUSTER is a folder under --desired-state (default ./desired_state).
    """
