"""The parts of a page as plain values, in the words of `cells`; the templates lay them out."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from quota_ops.report import cells
from quota_ops.report.standing import ReportRow, Section, Standing


class BarPart(NamedTuple):
    """A part of the bar and its line in the legend."""

    style: str
    label: str
    meaning: str
    quotas: int


MEANING = {
    Standing.IN_SYNC: "the cluster matches Git",
    Standing.CHANGED: "accepted by the broker; verify, if it ran, found no other value",
    Standing.FOUND: "the cluster stored it before this run sent anything",
    Standing.UNREAD: "this run did not change it, and no broker responded afterwards",
    Standing.PENDING: "waits to be set or cleared",
    Standing.DRIFTED: "changed on the cluster outside Git",
    Standing.RETURNED: "has an earlier run's value again",
    Standing.HELD: "not changed while a person holds it",
    Standing.UNSETTLED: "rejected, stale, unknown, or not read back from every broker",
    Standing.UNMANAGED: "on the cluster, and not declared in Git",
    Standing.FORGOTTEN: "neither in Git nor on the cluster; only the ledger knew it",
}


def style(standing: Standing) -> str:
    """The CSS class of a standing."""
    return standing.name.lower().replace("_", "-")


def bar(count: Mapping[Standing, int]) -> tuple[BarPart, ...]:
    """The parts of the bar that are not empty; what is on neither side has no part.

    Beside what this run changed, which is in sync now too, the others were in sync before.
    """
    labels = {Standing.IN_SYNC: "in sync before"} if count.get(Standing.CHANGED) else {}
    return tuple(
        BarPart(style(standing), labels.get(standing, standing.value), MEANING[standing], number)
        for standing, number in count.items()
        if number and standing is not Standing.FORGOTTEN
    )


MINUS = "\N{MINUS SIGN}"


class PageRow(NamedTuple):
    """A row's cells as plain text; `style` is the CSS class of its standing."""

    style: str
    sign: str
    kind: str
    entity: str
    note: str
    key: str
    current: str
    desired: str
    change: str
    since: tuple[str, ...]
    owner: str
    source: str
    answer: str
    trouble: str


def headings(*, applied: bool) -> tuple[str, ...]:
    """The headings of a table, in the order of its cells."""
    values = ("before", "after") if applied else ("current", "desired")
    return ("kind", "entity", "key", *values, "change", "since", "source", "result")


def page_row(row: ReportRow, *, read_back: bool) -> PageRow:
    """The cells of one row."""
    difference = row.difference
    touches = "" if row.section is Section.REST else cells.touches(difference)
    return PageRow(
        style=style(row.standing),
        sign=cells.sign(row),
        kind=cells.kind(row),
        entity=difference.entity,
        note="; ".join(filter(None, (touches, difference.reason, cells.origin(row)))),
        key=difference.key,
        current=cells.current(row),
        desired=cells.desired(row),
        change=cells.change(row).replace("-", MINUS),
        since=cells.since(row),
        owner=difference.owner or "",
        source=cells.source(row),
        answer=cells.trouble_word(row) or cells.answer(row, read_back=read_back),
        trouble=cells.trouble(row),
    )


def choices(rows: Sequence[PageRow]) -> dict[str, list[str]]:
    """What the rows can be filtered by, and the values that occur."""
    names = ("owner", "kind", "key")
    found = {name: {getattr(row, name) for row in rows} - {""} for name in names}
    return {name: sorted(values) for name, values in found.items()}
