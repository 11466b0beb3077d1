"""A report as Markdown, safe to paste into a pull request.

Text from outside quota-ops is in code spans, where nothing is a link, a mention, a reference,
markup or HTML.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from quota_ops.findings.silences import list_unsilenced
from quota_ops.model.commit import Provenance, short
from quota_ops.model.plans.plan import SHORT
from quota_ops.model.quotas.entity import Entity
from quota_ops.model.runs.report import Report
from quota_ops.model.text import counted
from quota_ops.report.outline import cells
from quota_ops.report.outline.effects import effect_parts
from quota_ops.report.outline.findings import EXPLAIN, FEW, more_words
from quota_ops.report.outline.formats import (
    escape_text,
    shortened,
    stated_words,
    uncommitted_words,
)
from quota_ops.report.outline.layout import Tone
from quota_ops.report.outline.outline import Block, list_blocks
from quota_ops.report.outline.row_status import ReportRow, Section, has_applied, report_rows
from quota_ops.report.outline.summary import summarize

LIMIT = 60_000
"""GitHub rejects a comment of more than 65,536 characters."""
LONGEST = 300
"""Characters of a name or message in a comment; the report has the whole text."""


def as_markdown(report: Report) -> str:
    """Return a comment of at most `LIMIT` characters, with the number of omitted rows."""
    rows = report_rows(report)
    summary = summarize(report, code(report.cluster))
    plan = f" · plan {code(report.plan.digest[:SHORT])}" if report.plan else ""
    commit = commit_part(report.provenance)
    head = [
        f"**quota-ops · {summary.fact}**{plan}{commit}",
        f"\n{_sentence(summary.details)}" if summary.details else "",
    ]
    listed = [row for row in rows if row.section is not Section.REST]
    tail = [
        *map(format_block, list_blocks(report, code)),
        *_findings(report),
    ]
    table = table_lines(listed, (*head, *tail), applied=has_applied(report))
    return "\n".join([*head, *table, *tail]) + "\n"


def table_lines(
    rows: Sequence[ReportRow],
    others: Iterable[str],
    *,
    applied: bool = False,
    line_break: str = "<br>",
    describe: Callable[[ReportRow], Sequence[str]] = effect_parts,
) -> list[str]:
    """Return the rows as a table that leaves room for the other lines; empty without rows.

    `describe` returns what a row does, or where its value is from, below its values.
    """
    current = cells.current_heading(applied=applied)
    head = ["", f"| | entity | key | {current} → desired | owner, reason, source |", "|-|-|-|-|-|"]
    lines = (_table_row(row, line_break, describe(row)) for row in rows)
    return [*head, *fitting(lines, len(rows), (*others, *head))] if rows else []


def fitting(rows: Iterable[str], total: int, others: Iterable[str]) -> list[str]:
    """Return the rows that leave room for the other lines, and how many of `total` are omitted."""
    room = LIMIT - sum(len(text) + 1 for text in others)
    fit: list[str] = []
    for row in rows:
        room -= len(row) + 1
        if room < 0:
            return [*fit, "", f"… and {total - len(fit):,} more; the report has them all."]
        fit.append(row)
    return fit


def commit_part(provenance: Provenance) -> str:
    """Return the commit of a run for a heading; empty if it is unknown."""
    if provenance.uncommitted:
        return f" · {uncommitted_words(provenance, code)}"
    if provenance.commit is None:
        return ""
    return f" · commit {code(short(provenance.commit))}{stated_words(provenance)}"


def findings_heading(number: str) -> str:
    """Return the heading of a list of findings, with the command that explains their codes."""
    return f"\n**{number}** ({code(EXPLAIN)} explains a code, and how to silence it)\n"


def code(text: str) -> str:
    """Return the text in a code span whose fence is longer than any backticks inside."""
    text = shortened(escape_text(text), LONGEST) or " "
    fence = "`" * (max((len(run) for run in re.findall("`+", text)), default=0) + 1)
    # CommonMark removes one space from both ends, unless there are only spaces.
    pad = " " if text.strip(" ") and {text[0], text[-1]} & {"`", " "} else ""
    return f"{fence}{pad}{text}{pad}{fence}"


def cell(text: str) -> str:
    """Return a code span for a table cell; a pipe would end the cell even inside a code span."""
    return code(text).replace("|", "\\|") if text else ""


def _sentence(parts: Iterable[str]) -> str:
    text = "; ".join(parts)
    return f"{text[:1].upper()}{text[1:]}."


def _table_row(row: ReportRow, line_break: str, described: Sequence[str]) -> str:
    change = cells.change(row).replace("-", "\N{MINUS SIGN}")
    why = cells.trouble(row) or cells.held(row) or cells.origin(row)
    difference = row.difference
    share = f" ({change})" if change.endswith("%") else ""
    whom = (
        f"{noun} {cell(name)}".strip()
        for noun, name in cells.list_entity_names(Entity.parse(difference.entity))
    )
    columns = (
        cells.sign(row),
        ", ".join(whom),
        cell(difference.key),
        line_break.join(
            [
                f"{cells.current(row)} → **{cells.desired(row)}**{share}",
                *(cell(words) for words in (*described, why) if words),
            ]
        ),
        line_break.join(
            cell(words)
            for words in (difference.owner, difference.reason, cells.source(row))
            if words
        ),
    )
    return f"| {' | '.join(columns)} |"


def format_block(block: Block) -> str:
    """Return a block of `list_blocks(report, code)` as a paragraph."""
    mark = "⚠ " if block.tone in {Tone.CHANGE, Tone.REFUSAL} else ""
    title = f"**{block.title}**: " if block.title else ""
    text = f"{mark}{title}{'<br>'.join(block.lines)}"
    if block.way:
        before, options, after = block.way
        text += f" {before} {code(options)} {after}"
    return f"\n{text}"


def _findings(report: Report) -> Iterator[str]:
    found = list_unsilenced(report.findings)
    if found:
        yield findings_heading(counted(len(found), "finding"))
    for finding in found[:FEW]:
        message = f"{code(finding.message)} {code(finding.remedy)}"
        yield f"- {finding.code} {code(finding.where)}: {message}"
    if more := more_words(found, FEW):
        yield f"- {more}"
