"""The effects of a change on the clients of an inventory: a million embedded, ten on Spark.

`python -m tests.benchmarks.clients FILE FOLDER` compares embedded; spark-submit runs it on Spark.
"""

import os
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import duckdb

from quota_ops.model.quotas.quota import CLIENT_KEYS
from quota_ops.model.quotas.rows import Key
from quota_ops.sql.client_effects import EffectsEngine, apply_targets, limits_table
from quota_ops.sql.inventory import find_inventory
from quota_ops.sql.spark_archive import find_spark
from quota_ops.store.places.run_store import open_place
from tests.benchmarks.bench import Bench, Row
from tests.benchmarks.measure import Sample, Spread, pair, run

ONE, TEN = 1_000_000, 10_000_000
HEAP = "768m"
"""The heap of Spark: small, because a JVM with more collects garbage later.

Its memory would then show when it did that, rather than what it needs.
"""
_ROOT = Path(__file__).parents[2]
_CLIENTS = """
SELECT 'user-' || u AS "user", 'client-' || i AS "client-id", 'team-' || (u % 50) AS owner
FROM (
  SELECT i, CAST(20 * pow(1 / (1 - ((i * 7919) % 1000003) / 1000003), 0.9) AS BIGINT) AS u
  FROM range({clients}) AS numbers(i)
)
"""
"""Few users have most of the clients: the largest has five percent of them."""


def write_inventory(place: Path, clients: int) -> Path:
    """Write a Parquet file of clients."""
    with duckdb.connect() as db:
        db.sql(_CLIENTS.format(clients=clients)).write_parquet(str(place))
    return place


def compare(engine: EffectsEngine, inventory: Path, to: Path) -> None:
    """Compare 12,000 limits of all four keys, before and after 4,001 changes."""
    before = {
        Key(f"user=user-{one}", key): 10.0 + one for one in range(2000) for key in CLIENT_KEYS
    }
    for one in range(2000):
        before[Key(f"client-id=client-{one * 3}", CLIENT_KEYS[0])] = 7.0
        before[Key(f"client-id=client-{one},user=user-{one % 30}", CLIENT_KEYS[1])] = 9.0
    before |= {Key("user=<default>", key): 100.0 for key in CLIENT_KEYS}
    cuts = {Key(f"user=user-{one}", key): 5.0 for one in range(0, 2000, 2) for key in CLIENT_KEYS}
    cuts[Key("user=<default>", CLIENT_KEYS[0])] = 50.0
    clients = find_inventory(open_place(inventory))
    after = limits_table(apply_targets(before, cuts))
    engine.compare_limits(clients, limits_table(before), after, open_place(to))


def clients(bench: Bench) -> Iterator[Row]:
    """Measure a million clients with four keys embedded, and ten million on Spark."""
    path = write_inventory(bench.home / "one.parquet", ONE)
    ten = write_inventory(bench.home / "ten.parquet", TEN)
    embedded = Spread.of([_embedded(bench, path).wall for _ in range(bench.runs)])
    yield Row(
        "limits of 1,000,000 clients and 4 keys, before and after, DuckDB",
        embedded.text(" s"),
        "under 10 s",
        embedded.median < 10,
    )
    measured = pair(partial(_spark, bench, ten), partial(_embedded, bench, ten), 1)
    wall, cpu = measured.spread("wall").median, measured.ratio("cpu").median
    what = f"limits of 10,000,000 clients, Spark, heap of {HEAP}"
    yield Row(what, f"{wall:.0f} s", "under 200 s", wall < 200)
    yield Row("the same: CPU to that of DuckDB", f"{cpu:.1f} times", "5 times", cpu <= 5)
    peak = measured.spread("peak").median / _spark(bench, path).peak
    yield Row("the same: memory to 1,000,000", f"{peak:.2f} times", "1.3 times", peak <= 1.3)


def _embedded(bench: Bench, inventory: Path) -> Sample:
    return run([sys.executable, "-m", __name__, str(inventory), _next_folder(bench)])


def _spark(bench: Bench, inventory: Path) -> Sample:
    settings = ("spark.ui.enabled=false", "spark.log.level=ERROR")
    options = [f"--conf={setting}" for setting in settings]
    heap = (f"--driver-memory={HEAP}", "--driver-java-options=-XX:+UseSerialGC")
    command = [str(find_spark() / "bin" / "spark-submit"), "--master=local[2]", *heap, *options]
    environment = {"PYTHONPATH": str(_ROOT), "SPARK_LOCAL_IP": "127.0.0.1"}
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return run([*command, __file__, str(inventory), _next_folder(bench), "spark"], environment)


def _next_folder(bench: Bench) -> str:
    return str(bench.home / f"effects-{len(list(bench.home.glob('effects-*')))}")


def main(inventory: str, to: str, engine: str = "embedded") -> None:
    """Compare the clients of an inventory by one engine."""
    if engine == "embedded":
        from quota_ops.sql.embedded_effects import EmbeddedEffects  # noqa: PLC0415 - one of two

        compare(EmbeddedEffects(), Path(inventory), Path(to))
        return
    from pyspark.sql import SparkSession  # noqa: PLC0415 - a JVM

    from quota_ops.sql.spark_effects import SparkEffects  # noqa: PLC0415 - likewise

    spark = SparkSession.builder.getOrCreate()
    compare(SparkEffects(spark), Path(inventory), Path(to))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
