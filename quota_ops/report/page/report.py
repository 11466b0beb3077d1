"""A report as one HTML page that needs no network and no second file, and reads without script."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from shlex import quote
from typing import NamedTuple

from quota_ops.findings.codes import CODES, Severity
from quota_ops.findings.silences import list_unsilenced
from quota_ops.model.commit import Provenance
from quota_ops.model.runs.report import Report
from quota_ops.report.outline import formats
from quota_ops.report.outline.brokers import broker_id, format_broker_result
from quota_ops.report.outline.capacity import format_scope, list_shares
from quota_ops.report.outline.commands import list_ways
from quota_ops.report.outline.findings import EXPLAINED, MOST, describe_rest
from quota_ops.report.outline.layout import Tone
from quota_ops.report.outline.outline import ON_PAGE, Block, Topic, list_blocks
from quota_ops.report.outline.row_status import (
    ReportRow,
    RowStatus,
    Section,
    count_statuses,
    has_applied,
    report_rows,
)
from quota_ops.report.outline.sentences import count_ending, describe_holds, describe_verified
from quota_ops.report.outline.summary import summarize
from quota_ops.report.page.limits import Stored, format_limits
from quota_ops.report.page.links import PageLinks, find_previous
from quota_ops.report.page.parts import bar, list_columns, list_headings, style, weigh
from quota_ops.report.page.past import add_run, draw_charts
from quota_ops.report.page.table import FIRST, PageTable, format_data, list_choices, make_table
from quota_ops.report.page.template import rendered, rendered_part
from quota_ops.report.page.use import note_use, show_throttled, show_use
from quota_ops.report.screens.history import CHANGE_HEADINGS, PAGE_COLUMNS, days_table


class Note(NamedTuple):
    """A note above the rows; `style` is a CSS class."""

    style: str
    title: str
    lines: Sequence[str]
    way: tuple[str, str, str] | None = None


def as_html(report: Report, stored: Stored = (), waits_until: datetime | None = None) -> str:
    """Return the page: summary, bar, rows that need attention, changed rows; the rest is folded.

    `stored` are the quotas on the cluster at the end of the run, to look up the limit of a client.
    `waits_until` is until when the run waits in Airflow for an approval; None if it does not.
    """
    links, ways, tables = PageLinks.of(report), list_ways(report), _make_tables(report)
    headings, cluster = list_headings(applied=has_applied(report)), quote(report.cluster)
    parts, shares = bar(count_statuses(report)), list(list_shares(report.promises))
    summary, use = summarize(report), show_use(report.use)
    blocks = [block for block in list_blocks(report) if block.topic in ON_PAGE]
    limits = format_limits(stored) if stored else None
    days = add_run(report.past.days, report) if report.past else ()

    def draw(row: Mapping[str, str]) -> str:
        return rendered_part("row.html", row=row, headings=headings, ways=ways)

    return rendered(
        "report.html",
        {f"#bar0 .{part.style}": part.quotas for part in parts}
        | weigh("share", (share.part for share in shares))
        | weigh("use", (line.part for line in use[1])),
        report=report,
        summary=summary,
        details=[*summary.details, *filter(None, (count_ending(report),))],
        looked=formats.moment(report.looked or report.finished),
        commit=formats.short_commit(report.commit),
        commit_link=links.find_commit(report.commit),
        previous=find_previous(report.past),
        bar_parts=parts,
        past=report.past,
        charts=list(draw_charts(days)),
        days=days_table(days, PAGE_COLUMNS).texts(),
        change_headings=CHANGE_HEADINGS,
        notes=[*_waiting(waits_until), *(_note(block) for block in blocks if block.tone in _NOTED)],
        sentences=[
            f"{block.title}: {words}" if block.title else words
            for block in blocks
            if block.tone not in _NOTED
            for words in block.lines
        ],
        person=tables[Section.PERSON],
        changes=tables[Section.CHANGE],
        held=tables[Section.HELD],
        folds=[(status, tables[status]) for status in RowStatus if status in tables],
        headings=headings,
        choices=list_choices(tables.values()),
        to_import=f"quota-ops import {cluster} --group-by prefix --into ./imported/{cluster}",
        ways=ways,
        data=format_data([*tables.values()], draw, limits),
        first=FIRST,
        holds=describe_holds(report),
        verified=describe_verified(report),
        broker_id=broker_id,
        format_broker_result=format_broker_result,
        shares=shares,
        shares_scope=format_scope(report),
        throttled=show_throttled({"": report.throttled} if report.throttled else {}),
        use=use,
        findings=list(_findings(report)),
        findings_found=len(list_unsilenced(report.findings)),
        explained=EXPLAINED,
        has_limits=limits is not None,
        resolve=f"quota-ops resolve {cluster} --user NAME --client-id ID --explain",
        facts=dict(_facts(report)),
    )


def _make_tables(report: Report) -> dict[str, PageTable]:
    """Return the tables by number: of each section, and of the rest by the statuses that occur."""
    drawn = [Section.PERSON, Section.CHANGE, Section.HELD]
    rows: dict[str, list[ReportRow]] = {part: [] for part in (*drawn, *RowStatus)}
    for row in report_rows(report):
        section = row.section
        rows[row.status if section is Section.REST else section].append(row)
    planned = Section.CHANGE.heading(applied=has_applied(report))
    captions: dict[str, str] = {
        Section.CHANGE: planned if rows[Section.CHANGE] else "About the plan"
    }
    list_cells = partial(
        list_columns, report=report, links=PageLinks.of(report), uses=note_use(report.use)
    )
    shown: list[Section | RowStatus] = [*drawn, *(status for status in RowStatus if rows[status])]
    return {
        part: make_table(number, captions.get(part, str(part)), rows[part], list_cells)
        for number, part in enumerate(shown)
    }


def _waiting(until: datetime | None) -> Iterator[Note]:
    if until is not None:
        words = (
            f"This run waits in Airflow, under Required Actions, until {until:%Y-%m-%d %H:%M} UTC."
        )
        yield Note(style(RowStatus.PENDING), "approval", [words])


_NOTED = frozenset({Tone.CHANGE, Tone.REFUSAL})
"""Blocks of these tones are notes; the others are sentences about the plan."""
_FAILURES = frozenset({Topic.STOP, Topic.VALIDATION, Topic.BROKER})
_TITLES = {
    Topic.CLIENTS: "clients",
    Topic.THROTTLING: "use",
    Topic.WARNING: "warning",
    Topic.STANDSTILL: "no writes",
    Topic.GUARD: "guard",
    Topic.OVERRIDE: "approval",
    Topic.VALIDATION: "broker",
    Topic.BROKER: "broker",
}


def _note(block: Block) -> Note:
    has_failed = block.tone is Tone.REFUSAL and block.topic in _FAILURES
    title = " ".join(filter(None, (_TITLES.get(block.topic), block.title)))
    status = RowStatus.UNSETTLED if has_failed else RowStatus.PENDING
    return Note(style(status), title, block.lines, block.way)


def _findings(report: Report) -> Iterator[Note]:
    found = list_unsilenced(report.findings)
    for finding in found[:MOST]:
        severity = CODES[finding.code].severity
        tone = RowStatus.PENDING if severity is Severity.WARNING else RowStatus.UNMANAGED
        yield Note(
            style(tone),
            f"{finding.code} {severity}, {finding.where}",
            [finding.message, finding.remedy],
        )
    if more := describe_rest(found):
        yield Note(style(RowStatus.UNMANAGED), more, [])


def _commit(provenance: Provenance) -> str:
    if provenance.uncommitted:
        return formats.describe_uncommitted(provenance)
    return (provenance.commit or "unknown") + formats.describe_stated_commit(provenance)


def _facts(report: Report) -> Iterator[tuple[str, str]]:
    plan = report.plan
    yield "plan", plan.digest if plan else "none"
    yield "commit", _commit(report.provenance)
    yield "cluster id", report.cluster_id or "unknown"
    yield "ledger", (plan.ledger if plan else None) or "none"
    yield "run", report.run
    yield "times", f"{report.started} to {report.finished}"
    ends = (
        (stage.stage, stage.status if stage.seconds is None else formats.duration(stage.seconds))
        for stage in report.stages
    )
    yield "stages", ", ".join(f"{stage} {end}" for stage, end in ends)
    if report.versions:
        yield "versions", ", ".join(f"{name} {version}" for name, version in report.versions)
