"""The parts of a page as plain values, in the words of `cells`; the templates lay them out."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from quota_ops.report import cells
from quota_ops.report.standing import ReportRow, Section, Standing

MINUS = "\N{MINUS SIGN}"


class PageRow(NamedTuple):
    """A row's cells; `style` is the CSS class of its standing."""

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


class BarPart(NamedTuple):
    """A part of the bar and its line in the legend."""

    style: str
    label: str
    meaning: str
    quotas: int


MEANING = {
    Standing.IN_SYNC: "the cluster holds what Git says",
    Standing.CHANGED: "the broker took it, and no broker was seen to hold anything else",
    Standing.PENDING: "waits to be set or cleared",
    Standing.DRIFTED: "changed on the cluster behind Git's back",
    Standing.HELD: "left as it is while a person's hold lasts",
    Standing.UNSETTLED: "refused, stale, unknown, or not read back from every broker",
    Standing.UNMANAGED: "on the cluster, and not described in Git",
    Standing.FORGOTTEN: "neither in Git nor on the cluster; only the ledger knew it",
}


def style(standing: Standing) -> str:
    """The CSS class of a standing."""
    return standing.name.lower().replace("_", "-")


def page_row(row: ReportRow, *, read_back: bool) -> PageRow:
    """The cells of one row."""
    difference = row.difference
    touches = "" if row.section is Section.REST else cells.touches(difference)
    return PageRow(
        style=style(row.standing),
        sign=cells.sign(row),
        kind=cells.kind(row),
        entity=difference.entity,
        note="; ".join(filter(None, (touches, difference.reason))),
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


def bar(count: Mapping[Standing, int]) -> tuple[BarPart, ...]:
    """The parts of the bar that are not empty; what is on neither side has no part."""
    return tuple(
        BarPart(style(standing), standing.value, MEANING[standing], number)
        for standing, number in count.items()
        if number and standing is not Standing.FORGOTTEN
    )


def choices(rows: Sequence[PageRow]) -> dict[str, list[str]]:
    """What the rows can be filtered by, and the values that occur."""
    names = ("owner", "kind", "key")
    found = {name: {getattr(row, name) for row in rows} - {""} for name in names}
    return {name: sorted(values) for name, values in found.items()}
