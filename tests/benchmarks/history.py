"""The history of a fleet: summarized by Spark, one more day, and read at a prompt."""

import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from quota_ops.model.history import HistoryRow
from quota_ops.model.moment import iso_utc
from quota_ops.sql.spark_archive import SMALL_JVM, driver_options, find_spark
from quota_ops.store.history import append, compact, list_days
from quota_ops.store.run_store import RunStore, open_place
from tests.benchmarks.bench import Bench, Row, row_of_seconds
from tests.benchmarks.measure import Sample, run
from tests.engines.submitting import ROOT, environment

RUNS = 1_000
CLUSTERS = 100
A_DAY = 40
DRIFTED = 3
NOTHING: dict[str, Any] = dict.fromkeys(HistoryRow._fields)


def history(bench: Bench) -> Iterator[Row]:
    """Measure the first summary, one more day, and the history of one quota."""
    store, days = RunStore(open_place(bench.home / "fleet_store")), RUNS // A_DAY
    today = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    first = today - timedelta(days=days + 1)
    for day in range(days):
        _write_day(store, first + timedelta(days=day), CLUSTERS, A_DAY)
        if day < days - 1:
            _compact(store, first + timedelta(days=day + 1))
    whole = _summarize(store)
    _write_day(store, first + timedelta(days=days), CLUSTERS, A_DAY)
    more = _summarize(store)
    what = f"history of {CLUSTERS} clusters x {RUNS:,} runs, Spark"
    cpu = f" s, CPU {whole.cpu:.1f} s"
    yield Row(what, f"{whole.wall:.1f}{cpu}", "under 60 s", whole.wall < 60)
    measured = f"{more.wall:.1f} s, CPU {more.cpu:.1f} s"
    yield Row("the same, one more day", measured, "under 15 s", more.wall < 15)
    long = RunStore(open_place(bench.home / "long_store"))
    for day in range(10 * days):
        began = today - timedelta(days=10 * days - day)
        _write_day(long, began, 1, A_DAY)
        _compact(long, began + timedelta(days=1))
    command = ("history", "c000", "--entity", "user=u0", "--since", "9000d")
    once = partial(bench.quota_ops, *command, QUOTA_OPS_RUN_STORE=str(long.root))
    yield row_of_seconds("history of one quota, 10,000 runs", once, bench.runs, 1.0)


def _write_day(store: RunStore, day: datetime, clusters: int, runs: int) -> None:
    """Append the looks of a day: each finds three quotas, which take turns, drifted."""
    for number in range(clusters):
        for look in range(runs):
            at = iso_utc(day + timedelta(minutes=36 * look % 1440, seconds=look))
            cluster = f"c{number:03}"
            end = NOTHING | {"cluster": cluster, "run": f"{at}-{look:04}", "sequence": look}
            end |= {"started": at, "ended": at, "revision": 1, "mode": "look", "status": "Pending"}
            quota: dict[str, Any] = {
                "key": "producer_byte_rate",
                "kind": "drifted",
                "state": "drifted",
            }
            quota |= {"owner": f"team-{number % 7}", "desired": 1e6, "actual": 2e6}
            rows = [
                HistoryRow(**end | quota | {"entity": f"user=u{(look // 4 + one) % 40}"})
                for one in range(DRIFTED)
            ]
            append(store, [HistoryRow(**end | {"declared": 400, "in_sync": 397}), *rows])


def _compact(store: RunStore, now: datetime) -> None:
    """Compact the past days, and delete what that replaces, as a job of the next day does."""
    for at in (now, now + timedelta(days=1)):
        newest = [one for one in list_days(store) if one.date < f"{now:%Y-%m-%d}"][-2:]
        assert compact(newest, at) == ()


def _summarize(store: RunStore) -> Sample:
    """Run the job as users submit it, on this machine."""
    options = f"--driver-java-options={SMALL_JVM} {driver_options()}"
    settings = ["--conf=spark.sql.shuffle.partitions=2", "--conf=spark.ui.enabled=false"]
    job = str(ROOT / "spark_jobs" / "summarize_history.py")
    submit = str(find_spark() / "bin" / "spark-submit")
    command = [submit, "--master=local[2]", options, *settings, job, store.root.uri]
    return run(command, environment() | {"PYSPARK_DRIVER_PYTHON": sys.executable})
