"""The end of report: record the end of the run, and write its report in each form."""

from collections.abc import Callable
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from platform import python_version

from msgspec.structs import replace

from quota_ops.kafka.connection import Connection
from quota_ops.model.quotas.tables import ACTUAL
from quota_ops.model.runs.report import Report
from quota_ops.report.outline.row_status import RowStatus, report_rows
from quota_ops.report.page.limits import Stored
from quota_ops.report.page.report import as_html
from quota_ops.report.records.json_report import as_json
from quota_ops.report.text.report import as_text
from quota_ops.sql.client_effects import read_quotas
from quota_ops.stages.report.end_record import find_audit_connection, record_end
from quota_ops.stages.report.history_rows import record_run_history
from quota_ops.stages.report.past import add_past
from quota_ops.stages.report.recorded_use import add_recorded_use
from quota_ops.stages.report.run_report import read_report
from quota_ops.store.run.files import PAGE, REPORT, TEXT
from quota_ops.store.run.folder import RunFolder

FORMS: dict[str, Callable[[Report], str]] = {REPORT: as_json, TEXT: as_text}


def write_reports(
    folder: RunFolder, find_audit: Callable[[str], Connection] = find_audit_connection
) -> Report:
    """Record the run's end, in the history too, and write report.json, .txt and .html.

    An alter, adopt or release has no such files: `show` prints its report. `find_audit` looks up
    the connection to the audit topic by its name.
    """
    read = add_past(folder, read_run(folder))
    stored = _read_stored(folder, read)
    read = add_recorded_use(folder, read, stored)
    forgotten = record_run_history(
        folder, read
    )  # before the end is recorded: later runs add nothing
    missed = record_end(folder, read, find_audit)
    if (missed, forgotten) == (read.audit, None):
        report = read
    else:
        report = replace(read, audit=missed, history=forgotten)
    if report.record is None:
        write_forms(folder, report, stored)
    return folder.read_cached(REPORT, lambda: report)


def read_run(folder: RunFolder) -> Report:
    """Return the report of a run, with the versions of the programs of this process."""
    return read_report(folder, _versions())


def write_forms(folder: RunFolder, report: Report, stored: Stored | None = None) -> None:
    """Write a report as report.json, .txt and .html; nothing is recorded."""
    for name, form in FORMS.items():
        folder.write_text(name, form(report))
    stored = _read_stored(folder, report) if stored is None else stored
    folder.write_text(PAGE, as_html(report, stored))


def _read_stored(folder: RunFolder, report: Report) -> list[tuple[str, str, float]]:
    """Return the quotas that the cluster has after a run, as far as known; none if damaged."""
    if report.plan is None or not folder.has(ACTUAL.file):
        return []
    written = {
        row.difference.id: row.difference.target
        for row in report_rows(report)
        if row.status in {RowStatus.CHANGED, RowStatus.FOUND}
    }
    return [(*key, value) for key, value in read_quotas(folder, written).items()]


@cache
def _versions() -> tuple[tuple[str, str], ...]:
    found = [("python", python_version())]
    for package in ("quota-ops", "kafka-python", "confluent-kafka", "duckdb", "pyspark"):
        try:
            found.append((package, version(package)))
        except PackageNotFoundError:
            continue
    return tuple(found)
