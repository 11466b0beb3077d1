"""The command that shows the report of an earlier run."""

from typing import TYPE_CHECKING

import click

from quota_ops.cli import options
from quota_ops.cli.console import show_result
from quota_ops.model.errors import InvalidInput

if TYPE_CHECKING:
    from quota_ops.model.runs.report import Report
    from quota_ops.report.outline.layout import Screen
    from quota_ops.store.run.folder import RunFolder


@options.command("""
  quota-ops show last                       the last run of all
  quota-ops show demo/last                  of one cluster
  quota-ops show 2026-11-21T10-15-00Z-7f3a
  quota-ops show 7f3a                       a unique part of its name""")
@click.argument("run")
@options.run_store
@options.output_format
def show(run: str, run_store: str | None, output: str) -> None:
    """Show the report of an earlier run.

    RUN is a run's name, a unique part of it, its folder, or `last`; with CLUSTER/ before it, a name
    or a cluster id, only runs of that cluster are searched. Reads only the run store.
    """
    from quota_ops.report.records.json_report import as_json
    from quota_ops.report.text.report import report_screen
    from quota_ops.stages.report.run_report import read_report
    from quota_ops.store.places.run_store import find_run_store
    from quota_ops.store.retention import refuse_pruned
    from quota_ops.store.run.names import find_run

    folder = find_run(find_run_store(run_store), run)
    refuse_pruned(folder)
    report = read_report(folder)
    show_result(
        output,
        text=lambda: (*report_screen(report), *_records(folder, report), *_place(folder)),
        json=lambda: as_json(report),
    )


def _records(folder: "RunFolder", report: "Report") -> "Screen":
    """Return what an alter, adopt or release recorded."""
    from quota_ops.model.runs.run import LedgerEdit
    from quota_ops.report.outline.layout import Tone, line
    from quota_ops.report.screens.alter import AlterReport, alter_table
    from quota_ops.report.screens.runs import ledger_table, record_screen
    from quota_ops.store.run.files import RELEASED

    try:
        record = folder.record()
    except InvalidInput as error:
        return (line(error.message, Tone.REFUSAL),)
    if record is None:
        return ()
    if isinstance(record, LedgerEdit):
        did = "Released" if folder.has(RELEASED) else "Adopted"
        return record_screen(did, record, ledger_table(record.rows))
    was_written = any(outcome.was_written for outcome in report.applied)
    table = alter_table(AlterReport(report, str(folder.place)))
    return record_screen("Altered" if was_written else "Requested changes", record, table)


def _place(folder: "RunFolder") -> "Screen":
    from quota_ops.report.outline.layout import Tone, line
    from quota_ops.store.run.files import PAGE

    page = folder.place / PAGE
    last = f"report: {page}" if page.exists() else f"run: {folder.place}"
    return (line(), line(last, Tone.CONTEXT))
