"""The parts of a page as plain values, with the texts of `cells`; the templates lay them out."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from quota_ops.model.quotas.rows import Key
from quota_ops.model.runs.report import Report
from quota_ops.report.outline import cells, commands
from quota_ops.report.outline.effects import effect_parts
from quota_ops.report.outline.past import describe_past, find_news, find_since
from quota_ops.report.outline.row_status import ReportRow, RowStatus
from quota_ops.report.page.links import PageLinks


class BarPart(NamedTuple):
    """A part of the bar and its line in the legend."""

    style: str
    label: str
    meaning: str
    quotas: int


def style(status: RowStatus) -> str:
    """Return the CSS class of a status."""
    return status.name.lower().replace("_", "-")


def bar(count: Mapping[RowStatus, int]) -> tuple[BarPart, ...]:
    """Return the parts of the bar that are not empty; forgotten rows have none.

    If this run changed rows, the other rows in sync are labelled `in sync before`.
    """
    labels = {RowStatus.IN_SYNC: "in sync before"} if count.get(RowStatus.CHANGED) else {}
    return tuple(
        BarPart(style(status), labels.get(status, status.value), status.meaning, number)
        for status, number in count.items()
        if number and status is not RowStatus.FORGOTTEN
    )


def weigh(name: str, parts: Iterable[int]) -> dict[str, int]:
    """Return the lengths of some bars and of the rest beside each, by CSS selector.

    `parts` are how long each is, in thousandths.
    """
    return {
        f"#{name}{number} {side}": weight
        for number, part in enumerate(parts)
        for side, weight in (("i", part), ("s", 1000 - part))
    }


MINUS = "\N{MINUS SIGN}"
Columns = dict[str, list[str]]
"""The cells of rows as plain text, by the names that `row.html` and the script of a page use."""

_COLUMNS = ("kind", "entity", "key", "current", "desired", "change", "since", "source", "result")


def list_headings(*, applied: bool) -> dict[str, str]:
    """Return the headings of a table by the fields that they sort by, in the order of its cells."""
    return {name: name for name in _COLUMNS} | {"current": cells.current_heading(applied=applied)}


def list_columns(
    rows: Sequence[ReportRow], report: Report, links: PageLinks, uses: Mapping[Key, str]
) -> Columns:
    """Return the cells of some rows; `uses` is what clients used of quotas, as far as known.

    style       the CSS class of the status
    link_start  how the link to the source begins, as most links of the page do; `link` is the rest
    news        `new` or `known` for drift
    past        what is known from earlier runs; `commit` links to what the last one set it from
    names       the options that name the entity, for `accept` and `hold`; empty without ways out
    """
    past, differences = report.past, [row.difference for row in rows]
    knowns = [past.find(row) for row in differences] if past else [None] * len(rows)
    lines = [*map(links.find_line, rows)]
    return {
        "style": [style(row.status) for row in rows],
        "sign": [*map(cells.sign, rows)],
        "kind": [*map(cells.kind, rows)],
        "entity": [row.entity for row in differences],
        "note": [_note(row, uses) for row in rows],
        "key": [row.key for row in differences],
        "current": [*map(cells.current, rows)],
        "desired": [*map(cells.desired, rows)],
        "change": [cells.change(row).replace("-", MINUS) for row in rows],
        "since": [find_since(row, past) for row in rows],
        "owner": [row.owner or "" for row in differences],
        "source": [*map(cells.source, rows)],
        "link_start": [start for start, _ in lines],
        "link": [end for _, end in lines],
        "result": [
            cells.name_trouble(row) or cells.result(row, report.verification.brokers)
            for row in rows
        ],
        "trouble": [*map(cells.trouble, rows)],
        "news": [find_news(row, past) for row in rows],
        "past": [" ".join(describe_past(row, past, report.started)) for row in rows],
        "commit": [
            links.find_commit(known.set_commit) if known and known.set_at else ""
            for known in knowns
        ],
        "names": [*map(commands.format_names, rows)],
        "accept_options": [commands.format_accept_options(row, report) for row in rows],
        "revert": [commands.explain_revert(row, report) for row in rows],
        "revert_command": [commands.format_revert(row, report) for row in rows],
    }


def _note(row: ReportRow, uses: Mapping[Key, str]) -> str:
    used = uses.get(row.difference.id) if uses else None
    texts = (cells.format_affected(row), row.difference.reason, cells.origin(row))
    return "; ".join(filter(None, (*texts, *effect_parts(row), used)))
