"""What clients used on recorded days, as a table with bars and small charts."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from markupsafe import Markup

from quota_ops.model.quotas.quota import format_limit
from quota_ops.model.quotas.rows import Key
from quota_ops.model.text import counted, floor_percent
from quota_ops.model.usage.recorded import RecordedQuota, RecordedUse
from quota_ops.model.usage.throttling import ThrottledNow
from quota_ops.report.outline.formats import format_rate
from quota_ops.report.page.chart import DailyNumber, draw_sparkline
from quota_ops.report.screens.usage import (
    THROTTLED_HEADINGS,
    describe_throttled,
    draw_bar,
    format_range,
    list_throttled,
)

MOST = 10
"""How many quotas the page of all clusters shows."""
_NEAR = 0.8
"""From which share of its limit on a client is near it."""


class UseLine(NamedTuple):
    """A quota, the use of its busiest client, and how long its bar is, in thousandths."""

    cluster: str
    entity: str
    note: str
    cells: tuple[str, ...]
    percent: str
    mark: str
    """A word beside the bar, so that the table reads without color; often empty."""
    part: int
    chart: Markup


Use = tuple[str, list[UseLine]]
"""Which days were read, and the quotas nearest to their limit; empty if none were recorded."""


def show_use(use: RecordedUse | None) -> Use:
    """Return the recorded use of a cluster."""
    return (describe_use(use), [*list_use(use)]) if use else ("", [])


def show_throttled(found: Mapping[str, ThrottledNow]) -> tuple[list[str], list[tuple[str, ...]]]:
    """Return who was throttled on each cluster, in words, and a table: its headings, then its rows.

    The only cluster of a page has an empty name, and no column.
    """
    words = {cluster: describe_throttled(now) for cluster, now in found.items()}
    own = ("cluster",) if any(found) else ()
    rows = [cells for cluster, now in found.items() for cells in list_throttled(now, cluster)]
    return [": ".join(filter(None, pair)) for pair in words.items()], [
        (*own, *THROTTLED_HEADINGS),
        *rows,
    ]


def describe_use(use: RecordedUse) -> str:
    """Return which days were read, how much of them was seen, and what the numbers are."""
    days = f"{counted(use.recorded, 'recorded day')} from {use.days[0]} to {use.days[-1]} (UTC)"
    if use.damaged:
        days += f", {use.damaged} more cannot be read (quota-ops usage names them)"
    listed = f"The {len(use.nearest):,} nearest of {counted(use.quotas, 'used quota')}"
    return (
        f"{days}, all brokers seen in {floor_percent(use.seen)} of them, beside the limits of this "
        f"run, whichever were in force then. {listed}: the busiest client of each on its busiest "
        "broker, never a sum. Time that was not recorded is unknown. Rates are exact to 2.5 %."
    )


def list_use(use: RecordedUse, cluster: str = "") -> Iterator[UseLine]:
    """Yield the line of each quota, the nearest to its limit first."""
    for quota in use.nearest:
        shares = [None if share is None else 100 * share for share in quota.days]
        name = f"{quota.entity} {quota.key}, p95 in percent of its limit"
        days = list(zip(use.days, shares, strict=True))
        numbers = DailyNumber(name, days)
        yield UseLine(
            cluster,
            quota.entity,
            _note(quota),
            (
                quota.key,
                quota.owner or "",
                format_limit(quota.key, quota.limit),
                format_rate(quota.key, quota.p95),
                format_range(quota.at_limit_least, quota.at_limit),
                format_rate(quota.key, quota.highest),
            ),
            floor_percent(quota.share),
            _mark(quota),
            min(1000, round(1000 * quota.share)),
            draw_sparkline(numbers, "changed"),
        )


def note_use(use: RecordedUse | None) -> dict[Key, str]:
    """Return a bar of the recorded use of each quota, for its row: `p95 ██▎ 23 % of 1 MB/s`."""
    quotas = (*use.nearest, *use.others) if use else ()
    return {
        Key(quota.entity, quota.key): f"p95 {draw_bar(quota.share).rstrip()} "
        f"{floor_percent(quota.share)} of {format_limit(quota.key, quota.limit)}"
        for quota in quotas
    }


def show_fleet_use(uses: Mapping[str, RecordedUse]) -> Use:
    """Return the quotas that are nearest to their limit, of all clusters."""
    if not uses:
        return "", []
    lines = [
        (quota.share, line)
        for cluster, use in uses.items()
        for quota, line in zip(use.nearest, list_use(use, cluster), strict=True)
    ]
    nearest = [line for _, line in sorted(lines, key=lambda each: -each[0])[:MOST]]
    names = [f"{cluster} (until {use.days[-1]})" for cluster, use in uses.items()]
    scope = (
        f"By the recorded days of {', '.join(names)}, beside the limits of their newest runs: the "
        "busiest client of each quota on its busiest broker, never a sum."
    )
    return scope, nearest


def _note(quota: RecordedQuota) -> str:
    client = "" if quota.client == quota.entity else quota.client
    count = f"the busiest of {counted(quota.clients, 'client')}" if quota.clients > 1 else ""
    return ", ".join(filter(None, (client, count)))


def _mark(quota: RecordedQuota) -> str:
    if quota.throttled:
        return "throttled"
    if quota.at_limit_least:
        return "at or above"
    if quota.share >= _NEAR:
        return "near"
    return "perhaps at it" if quota.at_limit else ""
