"""An overview of all clusters, with a month of history."""

from datetime import date, timedelta

from quota_ops.model.history.history import DayHistory, FleetHistory, QuotaDrift
from quota_ops.report.screens.fleet import Fleet
from tests.unit.report_sample import APPLIED, FAILED, PLANNED, TROUBLED

FLEET: Fleet = (
    ("prod-eu", APPLIED),
    ("demo", PLANNED),
    ("prod-us", TROUBLED),
    ("staging", "no broker responds\n  at kafka-1:9094"),
    ("lab", FAILED),
)
_LAST = date.fromisoformat(PLANNED.finished[:10])


def make_day(cluster: str, ago: int, drifted: int, refused: int = 0) -> DayHistory:
    """Return a day of a cluster with 415 quotas."""
    counts = (415, 415 - drifted, drifted, 0, 0, 0, 2, 0)
    day = (_LAST - timedelta(days=ago)).isoformat()
    return DayHistory(cluster, day, 24, 24, 0, refused, 0, 0, 0, None, None, *counts)


def make_drift(cluster: str, user: str, times: int, owner: str | None) -> QuotaDrift:
    """Return a quota that some runs found drifted."""
    first, last = "2026-11-02T08:00:00Z", "2026-11-20T08:00:00Z"
    return QuotaDrift(cluster, f"user={user}", "producer_byte_rate", owner, times, first, last)


HISTORY = FleetHistory(
    days=[
        make_day(name, ago, (ago * size) % 17, refused=int(name == "prod-us" and ago == 3))
        for ago in range(30, 0, -1)
        for name, size in (("demo", 3), ("lab", 1), ("prod-eu", 0), ("prod-us", 7))
    ],
    quotas=[
        make_drift("demo", "alice", 2, "payments"),
        make_drift("prod-us", "bob", 7, "search"),
        make_drift("prod-us", "carol", 1, None),
        make_drift("prod-us", "dora", 1, "payments"),
    ],
    changes={"prod-eu": "2026-11-21T10:00:00Z", "demo": "2026-11-02T10:00:00Z"},
)
