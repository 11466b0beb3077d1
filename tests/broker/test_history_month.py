"""A month of a cluster's life by real runs on a real broker, at times moved from outside."""

from datetime import datetime
from typing import Any

import pytest
import time_machine

from quota_ops.sql.history import History, read_history
from quota_ops.stages.report.run_report import read_report
from quota_ops.store.history.history import list_days
from quota_ops.store.run.names import NamedCluster, find_run
from tests.lab import Lab

KEY = "producer_byte_rate"
ALICE, BOB = "user=alice", "user=bob"
DAY = 86_400.0


def at(day: int, hour: int = 10) -> str:
    """Return a time in October 2026."""
    return f"2026-10-{day:02}T{hour:02}:00:00Z"


def run(lab: Lab, when: str, *arguments: str, code: int = 0) -> None:
    """Run a command at a moment at which Python's clocks stop; monotonic ones and Kafka's go on.

    libfaketime would move them for C code too, but not those that librdkafka waits by: it spins.
    """
    with time_machine.travel(datetime.fromisoformat(when), tick=False):
        ended = lab.call(*arguments)
    assert ended.returncode == code, ended.stderr + ended.stdout


@pytest.fixture
def lived(lab: Lab) -> History:
    """Return the history of a month with drifts, an alter, a failed run and a blocked one."""
    limits = {ALICE: {KEY: 10.0}, BOB: {KEY: 5.0}}
    lab.desire(limits)
    run(lab, at(1), "reconcile", "demo")
    run(lab, at(2), "plan", "demo")
    lab.put({ALICE: {KEY: 20.0}})
    run(lab, at(3), "plan", "demo")
    run(lab, at(4), "plan", "demo")
    run(lab, at(5), "reconcile", "demo")
    reason = ("--reason", "INC-31", "--by", "anna")
    run(lab, at(8, 9), "alter", "demo", "--names", BOB, "--add", f"{KEY}=7", *reason)
    run(lab, at(8), "plan", "demo")
    lab.put({BOB: {KEY: 5.0}})
    run(lab, at(9), "plan", "demo")
    (lab.folder / "team.yaml").write_text("owner: [")
    run(lab, at(12), "plan", "demo", code=2)
    lab.desire({**limits, "user=<default>": {KEY: 50.0}})
    run(lab, at(14), "plan", "demo", code=1)
    lab.desire({**limits, ALICE: {KEY: 12.0}})
    run(lab, at(15), "reconcile", "demo")
    lab.put({ALICE: {KEY: 22.0}})
    run(lab, at(20), "plan", "demo")
    run(lab, at(25), "reconcile", "demo")
    return read_history(lab.store, NamedCluster(("demo",)))


def test_a_month(lab: Lab, lived: History) -> None:
    """Quotas and days are what a person who watched that month would have written down."""
    assert lived.troubles == ()
    alice, bob = (
        {name: value for name, value in quota._asdict().items() if name in EXPECTED[quota.entity]}
        for quota in lived.quotas
    )
    assert (alice, bob) == (EXPECTED[ALICE], EXPECTED[BOB])
    names = ("runs", "failed", "blocked", "in_sync", "drifted", "pending", "changed", "repaired")
    days = {
        day.date[8:]: (*(getattr(day, name) for name in names), day.repair_median)
        for day in lived.days
    }
    assert days == {
        "01": (1, 0, 0, 2, 0, 0, 2, 0, None),
        "02": (1, 0, 0, 2, 0, 0, 0, 0, None),
        "03": (1, 0, 0, 1, 1, 0, 0, 0, None),
        "04": (1, 0, 0, 1, 1, 0, 0, 0, None),
        "05": (1, 0, 0, 2, 0, 0, 1, 1, 2 * DAY),
        "08": (2, 0, 0, 1, 1, 0, 1, 0, None),
        "09": (1, 0, 0, 2, 0, 0, 0, 1, DAY),
        "12": (1, 1, 0, None, None, None, 0, 0, None),
        "14": (1, 0, 1, 2, 0, 1, 0, 0, None),
        "15": (1, 0, 0, 2, 0, 0, 1, 0, None),
        "20": (1, 0, 0, 1, 1, 0, 0, 0, None),
        "25": (1, 0, 0, 2, 0, 0, 1, 1, 5 * DAY),
    }
    assert last_compacted(lab) == "2026-10-20"
    for hour in (10, 11):  # the second report finds each past day in one file
        run(lab, at(26, hour), "report", "demo")
        past = read_report(find_run(lab.store, "demo/last")).past
        assert past is not None
        shown = [day for day in past.days if day.date < "2026-10-26"]
        assert (shown, past.trouble) == (list(lived.days), None)
    assert last_compacted(lab) == "2026-10-25"


def last_compacted(lab: Lab) -> str:
    """Return the last day whose runs are in one file."""
    return [day.date for day in list_days(lab.store) if day.compacted][-1]


EXPECTED: dict[str, dict[str, Any]] = {
    ALICE: {
        "owner": "team",
        "drifts": 2,
        "times_seen": 5,
        "first_seen": at(3),
        "last_seen": at(25),
        "drifted_since": None,
        "desired": 12.0,
        "actual": 22.0,
        "repaired": at(25),
        "set_at": at(25),
        "set_value": 12.0,
        "altered_at": None,
    },
    BOB: {
        "owner": "team",
        "drifts": 1,
        "times_seen": 1,
        "first_seen": at(8),
        "last_seen": at(8),
        "drifted_since": None,
        "desired": 5.0,
        "actual": 7.0,
        "repaired": at(9),
        "repaired_by": None,
        "set_at": at(1),
        "set_value": 5.0,
        "altered_at": at(8, 9),
        "altered_by": "anna",
        "altered_reason": "INC-31",
        "altered_value": 7.0,
    },
}
