"""The overview of all clusters as a page: a row for each, totals over time, and frequent drift."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

from markupsafe import Markup

from quota_ops.model.history.history import (
    DayHistory,
    FleetHistory,
    OwnerTotal,
    QuotaDrift,
    compute_share,
    rank_owners,
    rank_quotas,
)
from quota_ops.model.runs.report import Report
from quota_ops.model.text import counted
from quota_ops.report.outline.formats import moment, short_commit, shortened
from quota_ops.report.outline.row_status import RowStatus, count_in_sync
from quota_ops.report.outline.sentences import count_ending
from quota_ops.report.outline.summary import SyncStatus
from quota_ops.report.page.chart import DailyNumber, draw_chart, draw_sparkline
from quota_ops.report.page.links import PageLinks
from quota_ops.report.page.parts import bar, weigh
from quota_ops.report.page.template import rendered
from quota_ops.report.page.use import show_fleet_use, show_throttled
from quota_ops.report.screens.fleet import Fleet, FleetCluster, describe_fleet, rank_clusters

MOST = 10
"""How many quotas, and how many owners, the page lists."""
SEARCHED = 20
"""With more clusters than this, the page has a search."""
_REASON = 400
"""The most characters of a reason; the report of the cluster has all of it."""
_HEADINGS = (
    "cluster",
    "status",
    "in sync",
    "overriding",
    "drifted",
    "pending",
    "unmanaged",
    "runs refused",
    "last compared",
    "last change",
    "30 days",
)


class Cell(NamedTuple):
    """A cell of a cluster's row: its text, and what the table is sorted by."""

    text: str
    value: str | float
    style: str = ""


class ClusterLine(NamedTuple):
    """The row of a cluster."""

    name: str
    link: str | None
    reason: str
    commit: str
    commit_link: str
    """Empty if nothing shows the commit."""
    cells: Sequence[Cell]
    sparkline: Markup


def as_html(
    fleet: Fleet,
    links: Mapping[str, str] | None = None,
    history: FleetHistory | None = None,
    written: str | None = None,
) -> str:
    """Return the overview as one HTML page that needs no network or second file.

    `links` has, by cluster, the address of its report, relative to the page. `written` is the time
    that the page shows; without it, that of the newest report.
    """
    clusters, history = rank_clusters(fleet), history or FleetHistory()
    reports = {name: report for name, report in fleet if isinstance(report, Report)}
    finished = max((report.finished for report in reports.values()), default=None)
    today = {name: _count_now(report) for name, report in fleet}
    days = history.group_days()
    total = Counter[RowStatus]()
    for cluster in clusters:
        total.update(cluster.count)
    parts = bar({status: total[status] for status in RowStatus})
    use = show_fleet_use({name: report.use for name, report in reports.items() if report.use})
    throttled = {name: report.throttled for name, report in reports.items() if report.throttled}
    return rendered(
        "fleet.html",
        {f"#bar0 .{part.style}": part.quotas for part in parts}
        | weigh("use", (line.part for line in use[1])),
        styles=("page.css", "fleet.css"),
        script="fleet.js",
        data="{}",
        sentence=describe_fleet(clusters),
        written=moment(written or finished),
        headings=_HEADINGS,
        clusters=[
            _make_line(
                cluster,
                reports.get(cluster.name),
                (links or {}).get(cluster.name),
                days.get(cluster.name, ()),
                history,
            )
            for cluster in clusters
        ],
        searched=len(clusters) > SEARCHED,
        total=parts,
        charts=list(_draw_totals(history, today, total[RowStatus.DRIFTED], finished)),
        throttled=show_throttled(throttled),
        use=use,
        quotas=[_quota_cells(quota) for quota in rank_quotas(history.quotas)[:MOST]],
        owners=[_owner_cells(owner) for owner in rank_owners(history.quotas)[:MOST]],
    )


def _count_now(report: Report | str) -> tuple[int, int] | None:
    """Return how many quotas are in sync, of how many declared; None if that is unknown."""
    if isinstance(report, Report) and report.plan:
        return count_in_sync(report), report.plan.desired
    return None


def _make_line(
    cluster: FleetCluster,
    report: Report | None,
    link: str | None,
    days: Sequence[DayHistory],
    history: FleetHistory,
) -> ClusterLine:
    now = _count_now(report) if report else None
    changed = history.changes.get(cluster.name, "")
    looked = history.looks.get(cluster.name) or (days[-1].date if days else "")
    shares = [(day.date, compute_share(day.in_sync or 0, day.declared or 0)) for day in days]
    if report and now:
        looked = report.looked or report.finished
        today = report.finished[:10]
        shares = [*(day for day in shares if day[0] < today), (today, compute_share(*now))]
    refused = sum(day.refused for day in days)
    counts = [_count_cell(cluster, status) for status in _COUNTED]
    status = cluster.summary.status
    tone = f"status status-{status.lower().replace(' ', '-')}"
    reason = cluster.summary.reason
    others = [
        f"{number:,} {other}"
        for other in _OTHERS
        if other not in reason and (number := cluster.count.get(other, 0))
    ]
    reasons = (reason, *others, count_ending(report) if report else "")
    return ClusterLine(
        cluster.name,
        link,
        shortened("; ".join(filter(None, reasons)), _REASON),
        short_commit(report.commit) if report else "",
        PageLinks.of(report).find_commit(report.commit) if report else "",
        (
            Cell(status, [*SyncStatus].index(status), tone),
            Cell(f"{now[0]:,} of {now[1]:,}", compute_share(*now) or 0) if now else Cell("", -1),
            *counts,
            Cell(f"{refused:,}" if refused else "", refused, "unsettled" if refused else ""),
            Cell(moment(looked) if "T" in looked else looked, looked),
            Cell(moment(changed) if changed else "", changed),
        ),
        draw_sparkline(DailyNumber(f"{cluster.name} in sync", shares, "%"), "in-sync"),
    )


_COUNTED = (RowStatus.OVERRIDING, RowStatus.DRIFTED, RowStatus.PENDING, RowStatus.UNMANAGED)
_OTHERS = (RowStatus.RETURNED, RowStatus.HELD, RowStatus.NOT_JUDGED, RowStatus.UNSETTLED)
"""The statuses without a column."""


def _count_cell(cluster: FleetCluster, status: RowStatus) -> Cell:
    if not cluster.count:
        return Cell("", -1)
    number = cluster.count[status]
    return Cell(f"{number:,}" if number else "", number, status.name.lower() if number else "")


def _draw_totals(
    history: FleetHistory,
    today: Mapping[str, tuple[int, int] | None],
    drifted_today: int,
    finished: str | None,
) -> Iterable[tuple[str, Markup]]:
    """Yield the heading and the chart of each total; nothing until there are two days.

    A cluster that no run compared on a day counts as it was when one last did, if it is still one.
    """
    shares: list[tuple[str, float | None]] = []
    drifted: list[tuple[str, float]] = []
    latest: dict[str, DayHistory] = {}
    days = (
        day
        for day in history.days
        if day.declared is not None and (finished is None or day.date < finished[:10])
    )
    for date, of_date in groupby(days, lambda day: day.date):
        latest = {name: day for name, day in latest.items() if name in today}
        latest |= {day.cluster: day for day in of_date}
        declared, in_sync, others = (
            sum(getattr(day, name) or 0 for day in latest.values())
            for name in ("declared", "in_sync", "drifted")
        )
        shares.append((date, compute_share(in_sync, declared)))
        drifted.append((date, float(others)))
    known = [pair for pair in today.values() if pair is not None]
    if finished and known:
        now = compute_share(
            sum(agreeing for agreeing, _ in known), sum(total for _, total in known)
        )
        shares.append((finished[:10], now))
        drifted.append((finished[:10], float(drifted_today)))
    for numbers, tone in (
        (DailyNumber("Quotas in sync", shares, "%"), "in-sync"),
        (DailyNumber("Quotas drifted", drifted), "drifted"),
    ):
        if drawn := draw_chart(numbers, tone):
            yield numbers.name, drawn


def _quota_cells(quota: QuotaDrift) -> tuple[str, ...]:
    return (
        quota.cluster,
        quota.entity,
        quota.key,
        quota.owner or "",
        f"{quota.times_seen:,}",
        moment(quota.first_seen),
        moment(quota.last_seen),
    )


def _owner_cells(owner: OwnerTotal) -> tuple[str, ...]:
    return (owner.owner, counted(owner.quotas, "quota"), f"{owner.times:,}")
