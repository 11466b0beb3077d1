"""What a run says when it is over: screens for people, the report's JSON for machines."""

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from quota_ops.cli.layout import TEXT, show
from quota_ops.model.approval import approve_command, needs_person
from quota_ops.model.guard import idle_words
from quota_ops.model.plan import Plan
from quota_ops.model.progress import SILENT, Progress
from quota_ops.model.report import Report
from quota_ops.report import screens
from quota_ops.report.remarks import is_accepted
from quota_ops.report.rollback import afterwards, rollback_screen
from quota_ops.report.screen import Screen, Tone, line
from quota_ops.stages.report.run_report import read_report
from quota_ops.store.run_folder import PAGE, REPORT, RunFolder

if TYPE_CHECKING:  # it loads Kafka's clients
    from quota_ops.runs.alter import Altered

MOST = 200
"""Rows that a screen lists; the report has them all."""


def report_of(folder: RunFolder) -> Report:
    """What a run came to."""
    return folder.once(REPORT, lambda: read_report(folder))


def show_run(command: str, folder: RunFolder, output: str) -> Report:
    """Show what a run came to, and give it back."""
    report = report_of(folder)
    if output != TEXT:
        from quota_ops.report.data import as_json

        click.echo(as_json(report))
        return report
    if command in {"diff", "plan", "validate", "apply", "reconcile", "report", "rollback"}:
        show(screens.plan_screen(report, most=None if command == "diff" else MOST))
    if report.rollback:
        ahead = [line(words, Tone.CHANGE) for words in afterwards(report.rollback, report.cluster)]
        show((line(), *rollback_screen(report.rollback), *ahead, line()))
    if report.applied:
        show(screens.apply_screen(report, most=MOST))
    if report.brokers:
        last: Screen = ()
        if command == "verify":
            last = (
                *screens.verdicts_screen(report, most=MOST),
                *screens.warning_lines(report),
                screens.verified_line(report),
            )
        show((*screens.verify_screen(report), *last))
    page = folder.path / PAGE
    if command == "verify":
        return report
    if page.exists():
        show((screens.finished_line(report, str(page)),))
    elif report.plan is not None:
        show((line(f"run: {folder.path}", Tone.CONTEXT), *_next(command, folder, report)))
    return report


def warn_idle(allow: Iterable[str], plan: "Plan | Altered | None") -> None:
    """Name on stderr the guards of --allow that did not block; nothing where none judged.

    Programs that ask for JSON read the guards of the plan: their stderr is for one error alone.
    """
    if click.get_current_context().params.get("output") != TEXT:
        return
    if plan is not None and (words := idle_words(allow, plan.guards)):
        click.echo(words, err=True)


def _next(command: str, folder: RunFolder, report: Report) -> Screen:
    """What writes exactly the plan that was shown, when the broker has nothing against it."""
    plan = report.plan
    if command not in {"plan", "validate", "rollback"} or plan is None or not plan.writes:
        return ()
    if (plan.refused and not needs_person(plan)) or not (report.validated and is_accepted(report)):
        return ()
    return (line(f"next: {approve_command(str(folder.path), plan)}"),)


@contextmanager
def progress(output: str) -> Iterator[Progress]:
    """Tell how far apply and verify are: on a terminal as bars, in a pipe not at all."""
    if output != TEXT or not sys.stderr.isatty():
        yield SILENT
        return
    from quota_ops.report.terminal import progress as on_a_terminal

    with on_a_terminal() as told:
        yield told
