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
    Standing.IN_SYNC: "the cluster holds what Git says",
    Standing.CHANGED: "the broker took it; verify, where it ran, saw no broker hold anything else",
    Standing.FOUND: "the cluster had it before this run sent anything",
    Standing.UNREAD: "this run did not change it, and no broker answered afterwards",
    Standing.PENDING: "waits to be set or cleared",
    Standing.DRIFTED: "changed on the cluster behind Git's back",
    Standing.RETURNED: "has the value of an earlier run again",
    Standing.HELD: "left as it is while a person's hold lasts",
    Standing.UNSETTLED: "refused, stale, unknown, or not read back from every broker",
    Standing.UNMANAGED: "on the cluster, and not described in Git",
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
    now: str
    then: str
    change: str
    since: tuple[str, ...]
    owner: str
    asked_by: str
    answer: str
    trouble: str


def headings(*, applied: bool) -> tuple[str, ...]:
    """The headings of a table, in the order of its cells."""
    values = ("before", "after") if applied else ("now", "then")
    return ("kind", "entity", "key", *values, "change", "since", "asked by", "answer")


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
        now=cells.now(row),
        then=cells.then(row),
        change=cells.change(row).replace("-", MINUS),
        since=cells.since(row),
        owner=difference.owner or "",
        asked_by=cells.asked_by(row),
        answer=cells.trouble_word(row) or cells.answer(row, read_back=read_back),
        trouble=cells.trouble(row),
    )


def choices(rows: Sequence[PageRow]) -> dict[str, list[str]]:
    """What the rows can be filtered by, and the values that occur."""
    names = ("owner", "kind", "key")
    found = {name: {getattr(row, name) for row in rows} - {""} for name in names}
    return {name: sorted(values) for name, values in found.items()}
