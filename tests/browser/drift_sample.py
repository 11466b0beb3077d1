"""A drift report with many rows and a month of history."""

from dataclasses import replace

from quota_ops.model.difference import Action, Kind
from quota_ops.model.history import DayHistory, QuotaHistory
from quota_ops.model.past import Past
from quota_ops.model.report import Report
from quota_ops.model.rows import Key
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
