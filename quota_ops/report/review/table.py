"""The tables of a comment: a row for each quota that a branch changes."""

from collections import Counter
from collections.abc import Sequence
from html import escape

from quota_ops.model.plans.plan import cuts_a_client
from quota_ops.model.quotas.difference import Action, Kind
from quota_ops.model.quotas.entity import Entity
from quota_ops.model.quotas.quota import QUOTA_KEYS, THREAD_KEY, format_limit
from quota_ops.model.runs.review import ClusterReview, Links
from quota_ops.model.text import counted
from quota_ops.report.markdown.report import LONGEST, cell
from quota_ops.report.outline import cells
from quota_ops.report.outline.effects import effect_parts
from quota_ops.report.outline.formats import escape_text, shortened
from quota_ops.report.outline.row_status import ReportRow
from quota_ops.report.review.rows import find_place

_PLAIN = frozenset({Kind.PENDING, Kind.REMOVED})
"""Kinds that the values show."""


def table_head(review: ClusterReview) -> list[str]:
    """Return the heading of a table of changes."""
    heading = f"| | who | quota | {review.compared_with} → desired | owner, source, reason |"
    return ["", heading, "|-|-|-|-|-|"]


def row_lines(review: ClusterReview, rows: Sequence[ReportRow], links: Links | None) -> list[str]:
    """Return a line of the table for each row."""
    return [_row(review, row, links) for row in rows]


def _row(review: ClusterReview, row: ReportRow, links: Links | None) -> str:
    difference = row.difference
    words = (
        _total(row, review.brokers),
        *map(cell, effect_parts(row)),
        cell(_kind(row)),
        cell(cells.trouble(row) or cells.held(row) or cells.left_alone(row) or _stays(row)),
    )
    columns = (
        cells.sign(row),
        _who(row),
        cell(difference.key),
        "<br>".join(filter(None, (_values(row), *words))),
        "<br>".join(
            filter(
                None,
                (
                    _owner(review, row, links),
                    cell(difference.derivation or ""),
                    cell(difference.reason or ""),
                ),
            )
        ),
    )
    return f"| {' | '.join(columns)} |"


def _who(row: ReportRow) -> str:
    entity = Entity.parse(row.difference.entity)
    parts = cells.list_entity_names(entity)
    return ", ".join(f"{noun} {cell(name)}".strip() for noun, name in parts)


def _values(row: ReportRow) -> str:
    change = cells.change(row).replace("-", "\N{MINUS SIGN}")
    share = f" ({change})" if change.endswith("%") else ""
    return f"{cells.current(row)} → **{cells.desired(row)}**{share}"


def _total(row: ReportRow, brokers: int) -> str:
    """Return what all brokers together allow; empty for one broker, or a limit of another kind."""
    target, key = row.difference.target, row.difference.key
    known = QUOTA_KEYS.get(key)
    if brokers < 2 or known is None or target is None:  # noqa: PLR2004 - a total of one
        return ""
    if known.by_controller or key == THREAD_KEY or target >= known.unlimited:
        return ""
    return f"at most {format_limit(key, target * brokers)} on {counted(brokers, 'broker')}"


def _kind(row: ReportRow) -> str:
    kind = row.difference.kind
    if kind in _PLAIN or row.difference.action is Action.HELD:
        return ""
    return f"{cells.kind(row)}: {cells.KIND_MEANING[kind]}"


def _stays(row: ReportRow) -> str:
    """Return why an undeclared value stays on the cluster; empty for others."""
    is_unmanaged = row.difference.kind in {Kind.UNMANAGED, Kind.OVERRIDING}
    if is_unmanaged and row.difference.action is Action.REPORT:
        return "stays on the cluster: quota-ops does not manage it"
    return ""


def _owner(review: ClusterReview, row: ReportRow, links: Links | None) -> str:
    place = find_place(review, row)
    owner = cell(row.difference.owner or "")
    if place is None:
        return owner
    path, line, at_base = place
    shown = cell(f"{path.rpartition('/')[2]}{f':{line}' if line else ''}")
    if links:
        shown = f"[{shown}]({links.find_line(path, line, at_base=at_base)})"
    return f"{owner} {'was ' if at_base else ''}{shown}".strip()


def group_by_owner(rows: Sequence[ReportRow]) -> list[tuple[str, list[ReportRow]]]:
    """Return the rows of each owner, the owner with the most rows first; empty for no owner."""
    groups: dict[str, list[ReportRow]] = {}
    for row in rows:
        groups.setdefault(row.difference.owner or "", []).append(row)
    return sorted(groups.items(), key=lambda group: (-len(group[1]), group[0]))


def owner_table(groups: Sequence[tuple[str, Sequence[ReportRow]]]) -> list[str]:
    """Return a table with the number of changes of each owner, by what they do."""
    head = ["", "| owner | changes | removed | cut | raised | new |", "|-|-:|-:|-:|-:|-:|"]
    counts = ((owner, len(rows), Counter(map(_count_as, rows))) for owner, rows in groups)
    return [
        *head,
        *(
            f"| {cell(owner) or 'none'} | {total:,} | "
            + " | ".join(f"{count[kind]:,}" for kind in ("removed", "cut", "raised", "new"))
            + " |"
            for owner, total, count in counts
        ),
    ]


def _count_as(row: ReportRow) -> str:
    difference = row.difference
    if difference.action is Action.CLEAR:
        return "removed"
    if difference.target is None:
        return ""
    if cuts_a_client(difference, row.effect):
        return "cut"
    return "new" if difference.before is None else "raised"


def as_html_code(text: str) -> str:
    """Return a text for a summary, in which Markdown is not read; `no owner` if it is empty."""
    return f"<code>{escape(shortened(escape_text(text), LONGEST))}</code>" if text else "no owner"


def other_table(rows: Sequence[ReportRow]) -> list[str]:
    """Return a table of differences that are not of the branch."""
    head = ["", "| who | quota | current → Git | kind |", "|-|-|-|-|"]
    return [
        *head,
        *(
            f"| {_who(row)} | {cell(row.difference.key)} | {cells.current(row)} → "
            f"{_in_git(row)} | {cell(cells.kind(row))} |"
            for row in rows
        ),
    ]


def _in_git(row: ReportRow) -> str:
    return format_limit(row.difference.key, row.difference.after)
