"""A report as plain text, for a pipe, a log or a mail."""

from collections.abc import Sequence

from quota_ops.findings.silences import list_unsilenced
from quota_ops.model.plans.plan import SHORT
from quota_ops.model.runs.report import Report
from quota_ops.report.outline.capacity import capacity_screen
from quota_ops.report.outline.findings import finding_lines
from quota_ops.report.outline.formats import at_commit, moment
from quota_ops.report.outline.layout import Screen, Tone, line, more_line, plain
from quota_ops.report.outline.outline import IN_TEXT, topic_lines
from quota_ops.report.outline.rollback import rollback_screen
from quota_ops.report.outline.row_status import ReportRow, Section, has_applied, report_rows
from quota_ops.report.outline.row_table import report_table
from quota_ops.report.outline.summary import summarize
from quota_ops.report.screens.plan import overriding_lines, verify_screen

MOST = 1_000
"""The most rows that a section lists; report.json has them all."""


def as_text(report: Report) -> str:
    """Return the report as text without wrapping or colour, at most `MOST` rows in a section."""
    return plain(report_screen(report))


def report_screen(report: Report) -> Screen:
    """Return the summary, rows that need attention, changed rows, brokers, findings, the rest."""
    rows: dict[Section, list[ReportRow]] = {section: [] for section in Section}
    for row in report_rows(report):
        rows[row.section].append(row)
    return (
        line(summarize(report).sentence, Tone.STRONG),
        line(_where(report), Tone.CONTEXT),
        *topic_lines(report, IN_TEXT),
        *(rollback_screen(report.rollback) if report.rollback and report.plan else ()),
        *_section(Section.PERSON, report, rows[Section.PERSON]),
        *overriding_lines(report),
        *_section(Section.CHANGE, report, rows[Section.CHANGE]),
        *_section(Section.HELD, report, rows[Section.HELD]),
        *((line(), line("Brokers", Tone.STRONG)) if report.verification.brokers else ()),
        *verify_screen(report),
        *capacity_screen(report),
        *_findings(report),
        *_section(Section.REST, report, rows[Section.REST]),
    )


def _where(report: Report) -> str:
    plan = f", plan {report.plan.digest[:SHORT]}" if report.plan else ""
    return (
        f"{report.cluster} ({report.cluster_id or 'unknown cluster id'}) "
        f"{at_commit(report.provenance)}{plan}, run {report.run}, {moment(report.finished)}"
    )


def _findings(report: Report) -> Screen:
    found = list_unsilenced(report.findings)
    heading = (line(), line(f"Findings ({len(found):,})", Tone.STRONG))
    return (*heading, *finding_lines(found)) if found else ()


def _section(section: Section, report: Report, shown: Sequence[ReportRow]) -> Screen:
    applied = has_applied(report)
    heading = f"{section.heading(applied=applied)} ({len(shown):,})"
    table = report_table(
        shown[:MOST], report.past, applied=applied, brokers=report.verification.brokers
    )
    more = more_line(len(shown) - MOST, "more, in report.json")
    return (line(), line(heading, Tone.STRONG), *table, *more) if shown else ()
