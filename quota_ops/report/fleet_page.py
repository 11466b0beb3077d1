"""The overview of all clusters as a page: a row for each, totals over time, what drifts most."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from quota_ops.model.fleet_history import (
    FleetHistory,
    OwnerTotal,
    compute_share,
    rank_owners,
    rank_quotas,
)
from quota_ops.model.history import DayHistory, QuotaHistory
from quota_ops.model.report import Report
from quota_ops.model.text import counted
from quota_ops.report.chart import DailyNumber, draw_chart, draw_sparkline
from quota_ops.report.ending import count_ending
from quota_ops.report.fleet import WORST_FIRST, Fleet, FleetCluster, describe_fleet, rank_clusters
from quota_ops.report.formats import moment, short_commit, shortened
from quota_ops.report.page_links import PageLinks
from quota_ops.report.page_parts import bar
from quota_ops.report.row_status import RowStatus, count_in_sync
from quota_ops.report.template import rendered

if TYPE_CHECKING:
    from markupsafe import Markup

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
    sparkline: "Markup"


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
    finished = max((one.finished for one in reports.values()), default=None)
    today = {name: _count_now(report) for name, report in reports.items()}
    days = history.group_days()
    total = Counter[RowStatus]()
    for cluster in clusters:
        total.update(cluster.count)
    parts = bar({status: total[status] for status in RowStatus})
    return rendered(
        "fleet.html",
        {f"#bar0 .{part.style}": part.quotas for part in parts},
        styles=("page.css", "fleet.css"),
        script="fleet.js",
        data="{}",
        sentence=describe_fleet(clusters),
        written=moment(written or finished),
        headings=_HEADINGS,
        clusters=[
            _make_line(
                one,
                reports.get(one.name),
                (links or {}).get(one.name),
                days.get(one.name, ()),
                history,
            )
            for one in clusters
        ],
        searched=len(clusters) > SEARCHED,
        total=parts,
        charts=list(_draw_totals(history, today, total[RowStatus.DRIFTED], finished)),
        quotas=[_quota_cells(one) for one in rank_quotas(history.quotas)[:MOST]],
        owners=[_owner_cells(one) for one in rank_owners(history.quotas)[:MOST]],
    )


def _count_now(report: Report) -> tuple[int, int] | None:
    """Return how many quotas are in sync, of how many declared; None if that is unknown."""
    return (count_in_sync(report), report.plan.desired) if report.plan else None


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
    shares = [(one.date, compute_share(one.in_sync or 0, one.declared or 0)) for one in days]
    if report and now:
        looked = report.looked or report.finished
        shares = [*_before(report, shares), (report.finished[:10], compute_share(*now))]
    refused = sum(one.refused for one in days)
    counts = [_count_cell(cluster, status) for status in _COUNTED]
    status = cluster.summary.word
    reason = cluster.summary.reason
    others = [
        f"{number:,} {one}"
        for one in _OTHERS
        if one not in reason and (number := cluster.count.get(one, 0))
    ]
    reasons = (reason, *others, count_ending(report) if report else "")
    return ClusterLine(
        cluster.name,
        link,
        shortened("; ".join(filter(None, reasons)), _REASON),
        short_commit(report.commit) if report else "",
        PageLinks.of(report).find_commit(report.commit) if report else "",
        (
            Cell(status, _rank(cluster), f"status status-{status.lower().replace(' ', '-')}"),
            Cell(f"{now[0]:,} of {now[1]:,}", compute_share(*now) or 0) if now else Cell("", -1),
            *counts,
            Cell(f"{refused:,}" if refused else "", refused, "unsettled" if refused else ""),
            Cell(moment(looked) if "T" in looked else looked, looked),
            Cell(moment(changed) if changed else "", changed),
        ),
        draw_sparkline(DailyNumber(f"{cluster.name} in sync", shares, "%"), "in-sync"),
    )


_COUNTED = (RowStatus.OVERRIDING, RowStatus.DRIFTED, RowStatus.PENDING, RowStatus.UNMANAGED)
_OTHERS = (RowStatus.RETURNED, RowStatus.HELD, RowStatus.UNSETTLED)
"""The statuses without a column."""


def _rank(cluster: FleetCluster) -> float:
    return WORST_FIRST.index(cluster.summary.word)


def _count_cell(cluster: FleetCluster, status: RowStatus) -> Cell:
    if not cluster.count:
        return Cell("", -1)
    number = cluster.count[status]
    return Cell(f"{number:,}" if number else "", number, status.name.lower() if number else "")


def _before(
    report: Report, days: Iterable[tuple[str, float | None]]
) -> list[tuple[str, float | None]]:
    return [one for one in days if one[0] < report.finished[:10]]


def _draw_totals(
    history: FleetHistory,
    today: Mapping[str, tuple[int, int] | None],
    drifted_today: int,
    finished: str | None,
) -> Iterable[tuple[str, "Markup"]]:
    """Yield the heading and the chart of each total; nothing until there are two days."""
    days: dict[str, list[DayHistory]] = defaultdict(list)
    for one in history.days:
        if one.declared is not None and (finished is None or one.date < finished[:10]):
            days[one.date].append(one)
    shares = [
        (date, compute_share(sum(d.in_sync or 0 for d in each), sum(d.declared or 0 for d in each)))
        for date, each in days.items()
    ]
    drifted = [(date, float(sum(one.drifted or 0 for one in each))) for date, each in days.items()]
    known = [one for one in today.values() if one is not None]
    if finished and known:
        now = compute_share(sum(one for one, _ in known), sum(one for _, one in known))
        shares.append((finished[:10], now))
        drifted.append((finished[:10], float(drifted_today)))
    for name, numbers, tone in (
        ("Quotas in sync", DailyNumber("Quotas in sync", shares, "%"), "in-sync"),
        ("Quotas drifted", DailyNumber("Quotas drifted", drifted), "drifted"),
    ):
        if chart := draw_chart(numbers, tone):
            yield name, chart


def _quota_cells(one: QuotaHistory) -> tuple[str, ...]:
    now = f"drifted since {moment(one.drifted_since)}" if one.drifted_since else "in sync"
    return (one.cluster, one.entity, one.key, one.owner or "", counted(one.drifts, "time"), now)


def _owner_cells(one: OwnerTotal) -> tuple[str, ...]:
    return (one.owner, counted(one.quotas, "quota"), counted(one.times, "time"))
