"""The end of a run: what is shown and what is recorded."""

from functools import partial
from pathlib import Path

import click

from quota_ops.cli.console import TEXT, show_result, show_screen
from quota_ops.model.plans.approval import approve_command, needs_approval
from quota_ops.model.quotas.difference import WRITES
from quota_ops.model.runs.report import Report
from quota_ops.report.outline.layout import Screen, Tone, line
from quota_ops.report.outline.outline import AFTER_VERIFY, topic_lines
from quota_ops.report.outline.rollback import list_next_steps, rollback_screen
from quota_ops.report.outline.row_status import report_rows
from quota_ops.report.outline.sentences import is_accepted
from quota_ops.report.screens import plan as screens
from quota_ops.stages.report.end_record import find_audit_connection, record_end
from quota_ops.stages.report.history_rows import record_run_history
from quota_ops.stages.report.run_report import load_report
from quota_ops.store.run.files import PAGE
from quota_ops.store.run.folder import RunFolder

MOST = 200
"""Rows that a screen lists; the report has them all."""
_MAKES_PLAN = frozenset({"plan", "validate", "rollback", "reconcile"})


def show_run(command: str, folder: RunFolder, output: str) -> Report:
    """Show the result of a run, and return its report."""
    report = load_report(folder)
    if output != TEXT:
        from quota_ops.report.records.json_report import as_json, row_json

        show_result(
            output, json=lambda: as_json(report), rows=lambda: map(row_json, report_rows(report))
        )
        return report
    if command in {"diff", "plan", "validate", "apply", "reconcile", "report", "rollback"}:
        show_screen(screens.plan_screen(report, most=None if command == "diff" else MOST))
    if report.rollback and report.plan:  # without one, which rows go back is not known yet
        steps = list_next_steps(report.rollback, report.cluster, report.run)
        ahead = [line(words, Tone.CHANGE) for words in steps]
        show_screen((line(), *rollback_screen(report.rollback), *ahead, line()))
    if report.applied:
        show_screen(screens.apply_screen(report, most=MOST))
    if report.verification.brokers:
        last: Screen = ()
        if command == "verify":
            last = (
                *screens.verdicts_screen(report, most=MOST),
                *screens.overriding_screen(report, most=MOST),
                *topic_lines(report, AFTER_VERIFY),
                screens.verified_line(report),
            )
        show_screen((*screens.verify_screen(report), *last))
    page = folder.place / PAGE
    if command == "verify":
        return report
    if page.exists():
        show_screen((screens.finished_line(report, str(page)),))
    elif report.plan is not None:
        show_screen(
            (line(f"run: {folder.place}", Tone.CONTEXT), *next_command(command, folder, report))
        )
    return report


def next_command(command: str, folder: RunFolder, report: Report) -> Screen:
    """Return the line with the command that writes the shown plan, if the broker accepts it."""
    plan = report.plan
    if (time := folder.about().as_of) is not None:
        return (line(f"as of {time}: this plan cannot be applied"),)
    if command not in _MAKES_PLAN or plan is None or folder.only_read:
        return ()
    writes = [row for row in report_rows(report) if row.difference.action in WRITES]
    if report.verification.brokers and all(row.is_done for row in writes):
        return ()  # only its report could not be written
    # A guard may also block a plan that only changes the policy.
    can_write = bool(report.validated) and is_accepted(report) if plan.writes else plan.refused
    if not can_write or (plan.refused and not needs_approval(plan)):
        return ()
    return (line(f"next: {approve_command(str(folder.place), plan)}"),)


def record_run(
    folder: RunFolder, report: Report, connection_file: Path | None, *, writes: bool
) -> None:
    """Record the end of a run without a report; warn if the audit topic or the history lacks it.

    Raises InvalidInput if the end of a run that writes cannot be recorded in the run store.
    """
    _warn_missed(record_run_history(folder, report))
    if writes:
        find_audit = partial(find_audit_connection, file=connection_file)
        _warn_missed(record_end(folder, report, find_audit))


def record_command(folder: RunFolder, connection_file: Path | None) -> None:
    """Record the end of an alter, adopt or release in the same way."""
    record_run(folder, load_report(folder), connection_file, writes=True)


def _warn_missed(missed: str | None) -> None:
    if missed is not None:
        click.echo(missed, err=True)
