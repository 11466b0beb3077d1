"""What is measured: each case gives rows of (what, measured, target)."""

import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path

from quota_ops.lab.kafka.broker import RunningBroker
from tests.benchmarks import bare, bulk, inputs
from tests.benchmarks.measure import Sample, Spread, pair, run

SMALL, LARGE = 10_000, 100_000
ONE_PERCENT = 100


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    what: str
    measured: str
    target: str
    met: bool


@dataclass(frozen=True)
class Bench:
    """Where a benchmark runs: a broker, a folder of its own, and how often."""

    broker: RunningBroker
    home: Path
    runs: int

    @property
    def cluster(self) -> Path:
        """The folder of the cluster `bench`."""
        return self.home / "desired_state" / "bench"

    def environment(self) -> dict[str, str]:
        """Everything of ours in this folder, nothing in the user's home."""
        connection = self.home / "bench.properties"
        connection.write_text(f"bootstrap.servers={self.broker.bootstrap()}\n")
        return {
            "QUOTA_OPS_RUN_STORE": str(self.home / "store"),
            "QUOTA_OPS_CONNECTION_BENCH": str(connection),
            "QUOTA_OPS_DESIRED_STATE": str(self.cluster.parent),
        }

    def quota_ops(self, *arguments: str, **environment: str) -> Sample:
        """One run of the command line."""
        command = [str(Path(sys.executable).with_name("quota-ops")), *arguments]
        return run(command, self.environment() | environment)

    def bare(self, *arguments: str) -> Sample:
        """One run of the bare program."""
        path = str(self.cluster / "bench.yaml")
        return run([sys.executable, bare.__file__, path, self.broker.bootstrap(), *arguments])


def start_up(bench: Bench) -> Iterator[Row]:
    """Commands that need no broker."""
    inputs.write_cluster(bench.cluster, bench.broker.config.cluster_id)
    inputs.write_quotas(bench.cluster, 10)
    small = [
        ("quota-ops --help", partial(bench.quota_ops, "--help"), 0.3),
        ("check of 10 entities", partial(bench.quota_ops, "check"), 0.3),
    ]
    for what, once, target in small:
        yield _seconds(what, once, bench.runs, target)
    inputs.write_quotas(bench.cluster, SMALL)
    check = partial(bench.quota_ops, "check")
    yield _seconds("check of 10,000 entities", check, bench.runs, 1.0)
    ten = Spread.of([check().wall for _ in range(bench.runs)])
    inputs.write_quotas(bench.cluster, 4 * SMALL)
    forty = Spread.of([check().wall for _ in range(bench.runs)])
    ratio = forty.median / ten.median
    yield Row("check: 40,000 entities to 10,000", f"{ratio:.2f} times", "4 times", ratio < 4.4)


def _seconds(what: str, once: Callable[[], Sample], runs: int, target: float) -> Row:
    once()
    spread = Spread.of([once().wall for _ in range(runs)])
    return Row(what, spread.text(" s"), f"under {target} s", spread.median < target)


def plan(bench: Bench) -> Iterator[Row]:
    """A plan of 10,000 entities of which 1 % differ."""
    _adopt(bench, SMALL)
    inputs.write_quotas(bench.cluster, SMALL, moved=ONE_PERCENT, step=1)
    measured = pair(partial(bench.quota_ops, "plan", "bench"), bench.bare, bench.runs)
    wall, peak = measured.ratio("wall"), measured.spread("peak")
    bare_wall = measured.spread("wall", other=True).median
    yield Row(
        f"plan, 10,000 entities, 1 % differ: to the bare program ({bare_wall:.2f} s)",
        wall.text(" times"),
        "2 times",
        wall.median <= 2,
    )
    yield Row("the same, peak memory", peak.text(" MB"), "under 250 MB", peak.median < 250)
    default = partial(bench.quota_ops, "plan", "bench", "--engine", "spark", QUOTA_OPS_SPARK_JVM="")
    ours = partial(bench.quota_ops, "plan", "bench", "--engine", "spark")
    spark = pair(ours, default, bench.runs)
    cpu = spark.ratio("cpu")
    yield Row(
        "plan --engine spark: CPU to that of Spark's default JVM settings",
        cpu.text(" times"),
        "0.6 times",
        cpu.median <= 0.6,
    )


def reconcile(bench: Bench) -> Iterator[Row]:
    """A reconcile of 10,000 entities: 1 % of them differ, all do, or the cluster has none yet."""
    steps = count(1)
    _adopt(bench, SMALL)

    def moved(every: int) -> None:
        inputs.write_quotas(bench.cluster, SMALL, moved=every, step=next(steps))

    def emptied() -> None:
        bulk.empty(bench.broker)
        shutil.rmtree(bench.home / "store", ignore_errors=True)  # none after the bare program
        inputs.write_quotas(bench.cluster, SMALL)

    yield _reconciled(bench, "1 % differ", partial(moved, ONE_PERCENT))
    yield _reconciled(bench, "all differ", partial(moved, 1))
    yield _reconciled(bench, "a first apply", emptied)


def _reconciled(bench: Bench, what: str, prepare: Callable[[], None]) -> Row:
    allow = ("--allow", "conflict", "--allow", "takeover", "--reason", "benchmark")

    def prepared(once: Callable[[], Sample]) -> Sample:
        prepare()
        return once()

    ours = partial(bench.quota_ops, "reconcile", "bench", *allow)
    other = partial(bench.bare, "apply")
    measured = pair(partial(prepared, ours), partial(prepared, other), bench.runs)
    wall, bare_wall = measured.ratio("wall"), measured.spread("wall", other=True).median
    return Row(
        f"reconcile, 10,000 entities, {what}: to the bare program ({bare_wall:.2f} s)",
        wall.text(" times"),
        "2 times",
        wall.median <= 2,
    )


def describe(bench: Bench) -> Iterator[Row]:
    """A describe of 100,000 entities against the library's own decode of it."""
    ratios = bulk.describe_ratios(bench.broker, LARGE, bench.runs)
    spread = Spread.of(ratios)
    yield Row(
        "describe of 100,000 entities: to the library's own decode",
        spread.text(" times"),
        "1.3 times",
        spread.median <= 1.3,
    )


def spark(bench: Bench) -> Iterator[Row]:
    """The diff of a million rows on a warm session."""
    seconds = Spread.of(bulk.spark_diff_seconds(bench.home / "million", 1_000_000, bench.runs))
    yield Row(
        "diff of 1,000,000 rows, Spark, warm, driver of 2 GiB",
        seconds.text(" s"),
        "under 4 s",
        seconds.median < 4,
    )


def resolve(bench: Bench) -> Iterator[Row]:
    """One client, and a million of them, from a snapshot of 10,000 entities."""
    snapshot = inputs.write_snapshot(bench.home / "snapshot.jsonl", SMALL)
    resolve = partial(bench.quota_ops, "resolve", "--actual", str(snapshot))
    one = partial(resolve, "--user", "user-000007", "--client-id", "app-7")
    yield _seconds("resolve of one client, 10,000 entities", one, bench.runs, 0.5)
    quarter, whole = (
        partial(
            resolve,
            *("--clients", str(inputs.write_clients(bench.home / f"{clients}.csv", clients))),
            *("--output", str(bench.home / "resolved.parquet")),
        )
        for clients in (250_000, 1_000_000)
    )
    measured = pair(whole, quarter, bench.runs)
    wall, ratio = measured.spread("wall"), measured.ratio("wall")
    yield Row("resolve of 1,000,000 clients", wall.text(" s"), "under 60 s", wall.median < 60)
    yield Row("the same to 250,000", ratio.text(" times"), "5 times", ratio.median <= 5)


def one_off(bench: Bench) -> Iterator[Row]:
    """What an operator types at night, on a small cluster: look, and change one limit."""
    inputs.write_cluster(bench.cluster, bench.broker.config.cluster_id)
    inputs.write_quotas(bench.cluster, 10)
    ten_mib = ("--names", "user=night", "--add", "producer_byte_rate=10 MiB")
    yield _seconds("alter", partial(bench.quota_ops, "alter", "bench", *ten_mib), bench.runs, 0.6)
    yield _seconds("describe", partial(bench.quota_ops, "describe", "bench"), bench.runs, 0.6)
    yield _seconds("ping", partial(bench.quota_ops, "ping", "bench"), bench.runs, 0.6)


def demo(bench: Bench) -> Iterator[Row]:
    """The whole demo, and what broker, Airflow and Spark take together."""
    began = time.monotonic()
    peak = bulk.peak_pss([str(Path(sys.executable).with_name("quota-ops")), "demo"], os.environ)
    seconds = time.monotonic() - began
    del bench
    yield Row("quota-ops demo", f"{seconds:.0f} s", "under 240 s", seconds < 240)
    yield Row(
        "the same, peak PSS of all processes", f"{peak:.0f} MB", "under 2,500 MB", peak < 2500
    )


def _adopt(bench: Bench, entities: int) -> None:
    """Bring the broker to a desired state of so many entities, all of them in the ledger."""
    inputs.write_cluster(bench.cluster, bench.broker.config.cluster_id)
    inputs.write_quotas(bench.cluster, entities)
    allow = ("--allow", "conflict", "--allow", "takeover", "--reason", "benchmark")
    bench.quota_ops("reconcile", "bench", *allow)


CASES = {
    "start": start_up,
    "one_off": one_off,
    "plan": plan,
    "reconcile": reconcile,
    "spark": spark,
    "resolve": resolve,
    "demo": demo,
    "describe": describe,
}
"""In the order in which they run: one_off wants a small cluster, describe leaves a large one."""
