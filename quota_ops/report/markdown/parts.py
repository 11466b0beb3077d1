"""The parts of comments and forms in Markdown, safe to paste into a pull request.

Text from outside quota-ops is in code spans, where nothing is a link, a mention, a reference,
markup or HTML.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from quota_ops.model.commit import Provenance, short
from quota_ops.model.quotas.entity import Entity
from quota_ops.model.text import counted
from quota_ops.report.outline import cells, findings, formats, outline
from quota_ops.report.outline.layout import Tone
from quota_ops.report.outline.row_status import ReportRow

_BREAK = " · "
"""Between the lines of a cell: Airflow shows no HTML, so also no <br>."""
LONGEST = 300
"""Characters of a name or message in a comment; the report has the whole text."""


def table_lines(
    rows: Sequence[ReportRow], describe: Callable[[ReportRow], Sequence[str]]
) -> list[str]:
    """Return the rows as a table; empty without rows.

    `describe` returns what a row does, or where its value is from, below its values.
    """
    current = cells.current_heading(applied=False)
    head = ["", f"| | entity | key | {current} → desired | owner, reason, source |", "|-|-|-|-|-|"]
    return [*head, *(_table_row(row, describe(row)) for row in rows)] if rows else []


def commit_part(provenance: Provenance) -> str:
    """Return the commit of a run for a heading; empty if it is unknown."""
    if provenance.uncommitted:
        return f" · {formats.describe_uncommitted(provenance, code)}"
    if provenance.commit is None:
        return ""
    return f" · commit {code(short(provenance.commit))}{formats.describe_stated_commit(provenance)}"


def findings_heading(number: str) -> str:
    """Return the heading of a list of findings, with the command that explains their codes."""
    return f"\n**{number}** ({code(findings.EXPLAIN)} explains a code, and how to silence it)\n"


def code(text: str) -> str:
    """Return the text in a code span whose fence is longer than any backticks inside."""
    text = formats.shortened(formats.escape_text(text), LONGEST) or " "
    fence = "`" * (max((len(run) for run in re.findall("`+", text)), default=0) + 1)
    # CommonMark removes one space from both ends, unless there are only spaces.
    pad = " " if text.strip(" ") and {text[0], text[-1]} & {"`", " "} else ""
    return f"{fence}{pad}{text}{pad}{fence}"


def cell(text: str) -> str:
    """Return a code span for a table cell; a pipe would end the cell even inside a code span."""
    return code(text).replace("|", "\\|") if text else ""


def _table_row(row: ReportRow, described: Sequence[str]) -> str:
    why = cells.trouble(row) or cells.explain_left(row)
    source = (row.difference.owner or "", row.difference.reason or "", cells.source(row))
    return change_row(row, map(cell, (*described, why)), map(cell, source), _BREAK)


def change_row(row: ReportRow, does: Iterable[str], source: Iterable[str], between: str) -> str:
    """Return a line of a table of changes: what a change does is below its values."""
    return table_row(
        cells.sign(row),
        format_who(row),
        cell(row.difference.key),
        between.join(filter(None, (format_values(row), *does))),
        between.join(filter(None, source)),
    )


def table_row(*columns: str) -> str:
    """Return a line of a table."""
    return f"| {' | '.join(columns)} |"


def format_who(row: ReportRow) -> str:
    """Return the entity of a row for a cell."""
    names = cells.list_entity_names(Entity.parse(row.difference.entity))
    return ", ".join(f"{noun} {cell(name)}".strip() for noun, name in names)


def format_values(row: ReportRow) -> str:
    """Return the values of a row for a cell."""
    change = cells.change(row).replace("-", "\N{MINUS SIGN}")
    share = f" ({change})" if change.endswith("%") else ""
    return f"{cells.current(row)} → **{cells.desired(row)}**{share}"


def owner_table(
    rows: Sequence[ReportRow], kinds: Sequence[str], kind_of: Callable[[ReportRow], str], most: int
) -> list[str]:
    """Return a table of the changes of each owner by kind, the owner with the most first."""
    numbers = Counter((row.difference.owner or "", kind_of(row)) for row in rows)
    totals = Counter(row.difference.owner or "" for row in rows)
    owners = sorted(totals, key=lambda owner: (-totals[owner], owner))
    headings = (kind.replace("_", " ") for kind in kinds)
    lines = ["", table_row("owner", "changes", *headings), f"|-|-:|{'-:|' * len(kinds)}"]
    for owner in owners[:most]:
        counts = (f"{number:,}" if (number := numbers[owner, kind]) else "" for kind in kinds)
        lines.append(table_row(cell(owner) or "no owner", f"{totals[owner]:,}", *counts))
    if more := owners[most:]:
        others = sum(totals[owner] for owner in more)
        blank = ("" for _ in kinds)
        lines.append(table_row(counted(len(more), "more owner"), f"{others:,}", *blank))
    return lines


def format_block(block: outline.Block) -> str:
    """Return a block of `list_blocks(report, code)` as a paragraph."""
    mark = "⚠ " if block.tone in {Tone.CHANGE, Tone.REFUSAL} else ""
    title = f"**{block.title}**: " if block.title else ""
    text = f"{mark}{title}{'<br>'.join(block.lines)}"
    if block.way:
        before, options, after = block.way
        text += f" {before} {code(options)} {after}"
    return f"\n{text}"
