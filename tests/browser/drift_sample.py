"""A drift report with many rows and a month of history."""

from datetime import datetime, timedelta
from typing import Any

from msgspec.structs import replace

from quota_ops.model.code_host import Repository
from quota_ops.model.history.history import DayHistory, QuotaHistory
from quota_ops.model.history.past import Past
from quota_ops.model.plans.hold import Hold
from quota_ops.model.quotas.difference import Action, Kind
from quota_ops.model.quotas.rows import Key
from quota_ops.model.quotas.specification import parse_exactly
from quota_ops.model.runs.report import Report
from tests.unit.report_sample import MIB, PLAN, PLANNED, difference

KEY = "producer_byte_rate"
NO_STATES = (0, 0, 0, 3, 0)
DAYS = tuple(
    DayHistory(
        *("demo", f"2026-11-{day + 1:02d}", 24, 24, 0, 0, 0, day % 5, day % 3, None, None),
        *(1000, 1000 - day * 7 % 13, day * 7 % 13, *NO_STATES),
    )
    for day in range(21)
)


_KNOWN: dict[str, Any] = {
    "set_at": "2026-11-14T10:00:09Z",
    "set_run": "2026-11-14T10-00-00Z-7f3a",
    "set_commit": "9c0ffee1d2e4",
}
_ROWS = (
    ("clickstream", "web", "producer_byte_rate", 90.0, 40.0, 14),
    ("checkout", "payments", "consumer_byte_rate", None, 60.0, 22),
    ("scorer", "risk", "producer_byte_rate", 10.0, 30.0, 9),
)
_PASTS: tuple[dict[str, Any], ...] = (
    {
        "altered_at": "2026-11-21T09:41:00Z",
        "altered_run": "2026-11-21T09-41-00Z-02c1",
        "altered_by": "anna",
        "altered_reason": "INC-31, spring campaign",
        "altered_value": 90 * MIB,
    },
    {"drifted_since": "2026-11-19T08:00:00Z", "drifts": 1},
    {"drifted_since": "2026-11-18T10:00:00Z", "drifts": 4},
)


def _make_drift() -> Report:
    rows = tuple(
        difference(
            {"user": name},
            key,
            (Kind.DRIFTED, Action.SET),
            None if before is None else before * MIB,
            after * MIB,
            owner=owner,
            file=f"{owner}.yaml",
            line=line,
            verified=after * MIB,
            since=_KNOWN["set_at"],
        )
        for name, owner, key, before, after, line in _ROWS
    )
    pasts = {
        row.id: QuotaHistory("orders-eu", *row.id, None, 0, 0, *(None,) * 18)._replace(
            **_KNOWN, set_value=row.after, **past
        )
        for row, past in zip(rows, _PASTS, strict=True)
    }
    now = datetime.fromisoformat(PLANNED.finished)
    who = parse_exactly(["user=fraud"], [], [])
    hold = Hold(who, now + timedelta(hours=5), "olga", "a load test until noon", now)
    policy = replace(PLAN.policy, cluster="orders-eu", schedule="*/30 * * * *")
    plan = replace(PLAN, policy=policy, differences=rows, desired=412, actual=411, holds=(hold,))
    return replace(
        PLANNED,
        cluster="orders-eu",
        plan=plan,
        validated=(),
        past=Past(pasts, DAYS, previous="2026-11-21T09-45-00Z-1a2b"),
        repository=Repository.parse("https://github.com/acme/quotas"),
        path="desired_state/orders-eu",
    )


def drifted_report(rows: int) -> Report:
    """Return a report of drifted quotas of twelve owners; one in nine was deleted."""
    differences = tuple(
        difference(
            {"user": f"user-{at}"},
            KEY,
            (Kind.DRIFTED, Action.SET),
            None if at % 9 == 0 else (at % 40 + 1) * MIB,
            10 * MIB,
            owner=f"team-{at % 12}",
            file=f"team-{at % 12}.yaml",
            line=at + 4,
            verified=10 * MIB,
            since="2026-11-14T10:00:09Z",
        )
        for at in range(rows)
    )
    known = {row.id: _past(row.id, at) for at, row in enumerate(differences) if at % 2 == 0}
    plan = replace(PLAN, differences=differences, desired=2 * rows, actual=2 * rows)
    return replace(PLANNED, plan=plan, validated=(), past=Past(known, DAYS))


def _past(key: Key, at: int) -> QuotaHistory:
    nothing = QuotaHistory("demo", *key, None, at % 4 + 1, 5, *(None,) * 18)
    return nothing._replace(
        drifted_since=f"2026-11-{at % 18 + 1:02d}T10:00:00Z" if at % 3 == 0 else None,
        set_at="2026-11-01T08:00:00Z",
        set_run=f"2026-11-01T08-00-00Z-7f3{at % 10}",
        set_commit="a1b2c3d4",
        set_value=10 * MIB,
    )


DRIFT = _make_drift()
"""The drift of a cluster: changed by an alter, deleted, and drifted again."""
