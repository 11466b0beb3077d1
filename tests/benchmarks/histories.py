"""The history: a summary of 100 clusters with 1,000 runs each, one more day, and one quota.

The inputs are compacted days, which are made in seconds: a file for each of 100,000 ends would take
minutes, and a summary compacts each day once only.
"""

import os
import sys
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from quota_ops.model.history.history import HISTORY, HistoryRow
from quota_ops.model.moment import iso_utc
from quota_ops.sql.spark_archive import find_spark
from quota_ops.store.history.history import day_folder
from quota_ops.store.places import parquet
from quota_ops.store.places.run_store import RunStore, open_place
from tests.benchmarks.bench import Bench, Row, row_of_seconds
from tests.benchmarks.measure import Sample, run

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
    """Measure the summary job, once and with one more day, and history of one quota."""
    fleet, today = bench.home / "fleet-history", datetime.now(UTC).date()
    store = RunStore(open_place(fleet))
    write_days(store, CLUSTERS, RUNS, today - timedelta(days=2))
    first = _summarize(fleet)
    yield Row("history of 100,000 runs summarized", _text(first), "under 60 s", first.wall < 60)
    write_days(store, CLUSTERS, A_DAY, today - timedelta(days=1))
    more = _summarize(fleet)
    yield Row("the same with one more day", _text(more), "under 15 s", more.wall < 15)
    path = bench.home / "one-history"
    write_days(RunStore(open_place(path)), 1, ONE_CLUSTER_RUNS, today - timedelta(days=1))
    _summarize(path)
    options = ("--entity", "user=u3", "--run-store", str(path))
    ask = partial(bench.quota_ops, "history", "c000", *options)
    yield row_of_seconds("history of one quota, 10,000 runs", ask, bench.runs, 1.0)


def _text(sample: Sample) -> str:
    return f"{sample.wall:.1f} s, CPU {sample.cpu:.1f} s"


def _summarize(store: Path) -> Sample:
    """Run the job as users do."""
    settings = ("--master=local[2]", "--conf=spark.ui.enabled=false")
    job = str(_ROOT / "spark_jobs" / "summarize_history.py")
    environment = {"PYTHONPATH": str(_ROOT), "SPARK_LOCAL_IP": "127.0.0.1"}
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    command = [str(find_spark() / "bin" / "spark-submit"), *settings, job, str(store)]
    return run(command, environment)
