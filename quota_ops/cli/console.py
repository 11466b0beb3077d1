"""The output of commands: screens, progress and warnings."""

import csv
import json
import logging
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from io import StringIO
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

from quota_ops.model.errors import InvalidInput
from quota_ops.model.plans.guard import GuardFinding, describe_idle_guard
from quota_ops.model.text import command, counted

if TYPE_CHECKING:
    from quota_ops.model.plans.policy import Policy
    from quota_ops.model.runs.progress import ConcurrentWrite, Progress
    from quota_ops.report.outline.layout import Screen
    from quota_ops.store.places.run_store import RunStore


TEXT = "text"
"""The `--format` for people."""
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""How cells begin that a spreadsheet runs as formulas."""


def show_screen(screen: "Screen", stream: TextIO | None = None) -> None:
    """Print a screen to stdout or another stream: in colour on a terminal, plain in a pipe."""
    from quota_ops.report.outline.layout import plain

    stream = stream or sys.stdout
    if not stream.isatty():
        click.echo(plain(screen), file=stream, nl=False)
        return
    from quota_ops.report.text.terminal import show as in_colour

    in_colour(screen, stream)


def show_result(output: str, *, columns: Iterable[str] = (), **forms: Callable[[], Any]) -> None:
    """Print the result of a command in the form that --format names; the other forms are not made.

    `text` returns a screen, whose blocks may also be text that is printed as it is. `json` returns
    a list or an object. `rows` returns a mapping for each row of the table, for `jsonl` and `csv`;
    `columns` are those that the header of `csv` has without any row. Any form may return text
    instead, whole or piece by piece.
    """
    made = forms[output if output in forms else "rows"]()
    if isinstance(made, str):
        click.echo(made, nl=False)
    elif output == "json" and isinstance(made, list | dict):
        click.echo(json.dumps(made, ensure_ascii=False, indent=1))
    elif output == "jsonl":
        for text in format_json_lines(made):
            click.echo(text, nl=False)
    elif output == "csv":
        rows = list(made)
        click.echo(format_csv(rows, columns), nl=False)
        cells = (value for row in rows for value in row.values() if isinstance(value, str))
        warn_of_formulas(cells)
    else:
        for is_text, blocks in groupby(made, key=lambda block: isinstance(block, str)):
            if is_text:
                click.echo("".join(blocks), nl=False)
            else:
                show_screen(tuple(blocks))


def format_json_lines(rows: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield a line of JSON for each row."""
    for row in rows:
        yield f"{json.dumps(row, ensure_ascii=False)}\n"


def format_csv(rows: Sequence[Mapping[str, Any]], columns: Iterable[str]) -> str:
    """Return a table with `columns`, and others that rows have.

    None is empty, a list or a mapping is JSON.
    """
    names = dict.fromkeys((*columns, *(name for row in rows for name in row)))
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(names)
    for row in rows:
        cells = (row.get(name) for name in names)
        writer.writerow(
            json.dumps(cell, ensure_ascii=False) if isinstance(cell, list | dict) else cell
            for cell in cells
        )
    return text.getvalue()


def warn_of_formulas(cells: Iterable[str]) -> None:
    """Warn on stderr of cells that a spreadsheet would run: names and owners may be anybody's."""
    from quota_ops.report.outline.formats import escape_text

    if formulas := [cell for cell in cells if cell.startswith(_FORMULA)]:
        warning = (
            f"{counted(len(formulas), 'cell')} would be a formula in a spreadsheet, such as "
            f"{formulas[0]}: import the file with all columns as text, or use JSON Lines"
        )
        click.echo(escape_text(warning), err=True)


def refuse_incomplete(troubles: Iterable[str], output: str) -> None:
    """Exit with 2 if part of a history could not be read, after naming it on stderr.

    The result has been shown and may lack something. In JSON, `not_counted` has the same.
    """
    troubles = tuple(troubles)
    if not troubles:
        return
    if output != "json":
        for trouble in troubles:
            click.echo(f"not counted: {trouble}", err=True)
        click.echo(
            "  The result may lack something. Where no command is shown, read a file of another "
            "version with that version, restore a damaged one from a backup, or delete it to "
            "accept that.",
            err=True,
        )
    raise click.exceptions.Exit(InvalidInput.exit_code)


class _OnStderr(logging.Handler):
    """Writes each log record as one harmless line, above any progress bars on the terminal."""

    def emit(self, record: logging.LogRecord) -> None:
        from quota_ops.report.outline.formats import escape_text

        at = f"{datetime.fromtimestamp(record.created).astimezone():%H:%M:%S.%f}"[:-3]
        click.echo(f"{at} {escape_text(record.getMessage())}", err=True)


@contextmanager
def log_to_stderr() -> Iterator[None]:
    """Show the log of quota-ops on stderr, for --verbose: no library's log, and no secret."""
    log, handler = logging.getLogger("quota_ops"), _OnStderr()
    level = log.level
    log.addHandler(handler)
    log.setLevel(logging.DEBUG)
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.setLevel(level)


@contextmanager
def show_progress(output: str) -> "Iterator[Progress]":
    """Show the progress of apply and verify as bars on a terminal; show nothing in a pipe."""
    if output != TEXT or not sys.stderr.isatty():
        from quota_ops.model.runs.progress import SILENT

        yield SILENT
        return
    from quota_ops.report.text.terminal import progress as on_a_terminal

    with on_a_terminal() as bars:
        yield bars


def warn_idle(allow: Iterable[str], guards: Iterable[GuardFinding] | None) -> None:
    """Warn on stderr of guards in --allow that did not block; silent if no guard was evaluated.

    Programs that ask for JSON read the guards of the plan: their stderr is for one error alone.
    """
    if click.get_current_context().params.get("output") != TEXT:
        return
    if guards is not None and (words := describe_idle_guard(allow, guards)):
        click.echo(words, err=True)


def warn_of_writes(writes: "Iterable[ConcurrentWrite]") -> None:
    """Name on stderr the runs that are currently writing the entities of a command."""
    from quota_ops.report.text.progress import describe_concurrent_writes

    for words in describe_concurrent_writes(writes):
        click.echo(words, err=True)


def warn_invalid(cluster: str, words: str) -> None:
    """Warn on stderr that a command knows only what an invalid file declared when it was valid."""
    click.echo(
        f"{words}: only its quotas in the ledger are known. To see every problem: "
        f"{command('check', cluster)}",
        err=True,
    )


def warn_empty(store: "RunStore") -> None:
    """Warn on stderr that a run store has nothing in it, which may be a typing error."""
    if not store.root.entries():
        click.echo(
            f"The run store {store.root} is empty or does not exist. If there were runs or holds, "
            "correct --run-store or QUOTA_OPS_RUN_STORE.",
            err=True,
        )


def warn_unnamed(actual: Path, cluster_id: str | None, policy: "Policy") -> None:
    """Warn on stderr that a snapshot without an id may come from any cluster."""
    if cluster_id is None:
        click.echo(
            f"{actual} contains no cluster id, so quota-ops cannot check that it is of "
            f"{policy.cluster} ({policy.cluster_id}). A snapshot that describe writes now names "
            "its cluster.",
            err=True,
        )
