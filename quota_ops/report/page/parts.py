"""The parts of a page as plain values, with the texts of `cells`; the templates lay them out."""

from collections.abc import Mapping
from typing import NamedTuple

from quota_ops.model.runs.report import Report
from quota_ops.report.outline import cells, ways
from quota_ops.report.outline.effects import effect
from quota_ops.report.outline.past import describe_past, find_news, find_since
from quota_ops.report.outline.row_status import ReportRow, RowStatus
from quota_ops.report.page.links import PageLinks


class BarPart(NamedTuple):
    """A part of the bar and its line in the legend."""

    style: str
    label: str
    meaning: str
    quotas: int


MEANING = {
    RowStatus.IN_SYNC: "the cluster matches Git",
    RowStatus.OVERRIDDEN: "stored as in Git, and some clients get another quota in its place",
    RowStatus.CHANGED: "accepted by the broker; verify, if it ran, found no other value",
    RowStatus.FOUND: "the cluster stored it before this run sent anything",
    RowStatus.UNREAD: "this run did not change it, and no broker responded afterwards",
    RowStatus.PENDING: "waits to be set or cleared",
    RowStatus.OVERRIDING: "unmanaged, and in force for clients of quotas that Git declares",
    RowStatus.DRIFTED: "changed on the cluster outside Git",
    RowStatus.RETURNED: "has an earlier run's value again",
    RowStatus.HELD: "not changed while a person holds it",
    RowStatus.NOT_JUDGED: "not changed, because its file is invalid",
    RowStatus.UNSETTLED: "rejected, stale, unknown, different on a broker, or not read back",
    RowStatus.UNMANAGED: "on the cluster, and not declared in Git",
    RowStatus.FORGOTTEN: "neither in Git nor on the cluster; only the ledger knew it",
}


def style(status: RowStatus) -> str:
    """Return the CSS class of a status."""
    return status.name.lower().replace("_", "-")


def bar(count: Mapping[RowStatus, int]) -> tuple[BarPart, ...]:
    """Return the parts of the bar that are not empty; forgotten rows have none.

    If this run changed rows, the other rows in sync are labelled `in sync before`.
    """
    labels = {RowStatus.IN_SYNC: "in sync before"} if count.get(RowStatus.CHANGED) else {}
    return tuple(
        BarPart(style(status), labels.get(status, status.value), MEANING[status], number)
        for status, number in count.items()
        if number and status is not RowStatus.FORGOTTEN
    )


MINUS = "\N{MINUS SIGN}"


class PageRow(NamedTuple):
    """A row's cells as plain text; `style` is the CSS class of its status."""

    style: str
    sign: str
    kind: str
    entity: str
    note: str
    key: str
    current: str
    desired: str
    change: str
    since: str
    owner: str
    source: str
    link_start: str
    """How the link to the source begins, as most links of the page do."""
    link: str
    """The rest of the link to the source."""
    result: str
    trouble: str
    news: str
    """`new` or `known` for drift."""
    past: str
    """What is known about it from earlier runs."""
    commit: str
    """The link to the commit that a run set it from."""
    names: str
    """The options that name its entity, for `accept` and `hold`; empty without ways out."""
    accept_options: str
    revert: str
    revert_command: str


_COLUMNS = ("kind", "entity", "key", "current", "desired", "change", "since", "source", "result")


def list_headings(*, applied: bool) -> dict[str, str]:
    """Return the headings of a table by the fields that they sort by, in the order of its cells."""
    return {name: name for name in _COLUMNS} | {"current": cells.current_heading(applied=applied)}


def page_row(row: ReportRow, report: Report, links: PageLinks, use: str = "") -> PageRow:
    """Return the cells of one row; `use` is what clients used of its quota, if that is known."""
    difference, past = row.difference, report.past
    known = past.find(difference) if past else None
    touches = cells.format_affected(row)
    link_start, link = links.find_line(row)
    return PageRow(
        style=style(row.status),
        sign=cells.sign(row),
        kind=cells.kind(row),
        entity=difference.entity,
        note="; ".join(
            filter(None, (touches, difference.reason, cells.origin(row), effect(row), use))
        ),
        key=difference.key,
        current=cells.current(row),
        desired=cells.desired(row),
        change=cells.change(row).replace("-", MINUS),
        since=find_since(row, past),
        owner=difference.owner or "",
        source=cells.source(row),
        link_start=link_start,
        link=link,
        result=cells.name_trouble(row) or cells.result(row, report.brokers),
        trouble=cells.trouble(row),
        news=find_news(row, past),
        past=" ".join(describe_past(row, past, report.started)),
        commit=links.find_commit(known.set_commit) if known and known.set_at else "",
        names=ways.format_names(row),
        accept_options=ways.format_accept_options(row, report),
        revert=ways.explain_revert(row, report),
        revert_command=ways.format_revert(row, report),
    )
