"""The history: one quota of a cluster with 10,000 runs, and all of 100 clusters.

The inputs are compacted days, which are made in seconds: a file for each end would take minutes.
"""

import time
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from quota_ops.model.history.history import HISTORY, HistoryRow
from quota_ops.model.moment import iso_utc
from quota_ops.sql.history import read_fleet_history
from quota_ops.store.history.history import compact, day_folder, list_days
from quota_ops.store.places import parquet
from quota_ops.store.places.run_store import RunStore, open_place
from tests.benchmarks.bench import Bench, Row, row_of_seconds

CLUSTERS, RUNS, A_DAY = 100, 1_000, 24
ONE_CLUSTER_RUNS = 10_000
_ROOT = Path(__file__).parents[2]
_NOTHING: dict[str, Any] = dict.fromkeys(HistoryRow._fields)


def write_days(store: RunStore, clusters: int, runs: int, last: date) -> None:
    """Write hourly runs of each cluster as compacted days; fifty quotas drift now and then."""
    days = -(-runs // A_DAY)
    for number in range(days):
        on = last - timedelta(days=days - 1 - number)
        begun = datetime(on.year, on.month, on.day, tzinfo=UTC)
        rows = [
            row
            for hour in range(A_DAY)
            for row in _list_rows(number * A_DAY + hour, begun + timedelta(hours=hour), clusters)
        ]
        table = parquet.from_rows(HISTORY, rows).cast(parquet.arrow_schema(HISTORY))
        notes = {"compacted": iso_utc(begun)}
        place = day_folder(store, on.isoformat()) / "day-0001.parquet"
        place.create(parquet.to_bytes(HISTORY, table, notes))


def _list_rows(number: int, at: datetime, clusters: int) -> Iterator[HistoryRow]:
    """Yield an end of a run of each cluster, and the quotas that it found drifted."""
    ended, is_apply = iso_utc(at), number % A_DAY == 0
    drifted = [one for one in range(50) if number // (6 + one) % (40 + one) == one]
    for cluster in range(clusters):
        of_run: dict[str, Any] = _NOTHING | {
            "cluster": f"c{cluster:03}",
            "run": f"{ended}-{number}",
        }
        of_run |= {"sequence": number, "started": ended, "ended": ended, "revision": 1}
        of_run |= {"mode": "apply" if is_apply else "look", "status": "Pending"}
        counts = {"declared": 2000, "in_sync": 2000 - len(drifted), "drifted": len(drifted)}
        yield HistoryRow(**of_run | counts)
        for one in drifted:
            quota: dict[str, Any] = {"entity": f"user=u{one}", "key": "producer_byte_rate"}
            quota |= {"kind": "drifted"}
            quota |= {"state": "changed" if is_apply else "drifted", "owner": f"team{one % 5}"}
            quota |= {"outcome": "accepted" if is_apply else None, "desired": 1e6, "actual": 2e6}
            yield HistoryRow(**of_run | quota)


def histories(bench: Bench) -> Iterator[Row]:
    """Measure the history of one quota, by days and by months, and that of all clusters."""
    today = datetime.now(UTC)
    path = bench.home / "one-history"
    store = RunStore(open_place(path))
    write_days(store, 1, ONE_CLUSTER_RUNS, today.date() - timedelta(days=1))
    options = ("--entity", "user=u3", "--run-store", str(path))
    ask = partial(bench.quota_ops, "history", "c000", *options)
    yield row_of_seconds("history of one quota, 10,000 runs in days", ask, bench.runs, 2.0)
    for later in (0, 1):
        compact(list_days(store), today + timedelta(days=later))
    yield row_of_seconds("the same, in months", ask, bench.runs, 1.5)
    fleet = RunStore(open_place(bench.home / "fleet-history"))
    write_days(fleet, CLUSTERS, RUNS, today.date() - timedelta(days=1))
    since = f"{today - timedelta(days=30):%Y-%m-%d}"
    began = time.perf_counter()
    found = read_fleet_history(fleet, since)
    took = time.perf_counter() - began
    assert found.quotas
    yield Row("30 days of 100 clusters, 72,000 runs", f"{took:.2f} s", "under 2 s", took < 2)
