"""Plans compared with the bare program, which reads the same YAML."""

import shutil
from collections.abc import Iterator
from functools import partial

from tests.benchmarks import bulk, inputs
from tests.benchmarks.bench import Bench, Row, row_to_bare
from tests.benchmarks.measure import pair

SMALL, LARGE = 10_000, 100_000
ONE_PERCENT = 100
ALLOW = ("--allow", "conflict", "--allow", "takeover", "--reason", "benchmark")


def plan(bench: Bench) -> Iterator[Row]:
    """Measure a plan of 10,000 entities of which 1 % differ."""
    adopt(bench, SMALL)
    inputs.write_quotas(bench.cluster, SMALL, moved=ONE_PERCENT, step=1)
    every_file = partial(bench.quota_ops, "plan", "bench")
    measured = pair(every_file, bench.bare, bench.runs)
    yield row_to_bare("plan, 10,000 entities, 1 % differ", measured, 2.0)
    peak = measured.spread("peak")
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


def empty(bench: Bench) -> None:
    """Clear every quota of the broker, and remove the run store, which the bare program lacks."""
    bulk.empty(bench.broker)
    shutil.rmtree(bench.home / "store", ignore_errors=True)


def adopt(bench: Bench, entities: int, files: int = 1) -> None:
    """Bring the broker, empty before, to a desired state of so many entities, all in the ledger."""
    empty(bench)
    inputs.write_cluster(bench.cluster, bench.broker.config.cluster_id)
    inputs.write_quotas(bench.cluster, entities, files=files)
    bench.quota_ops("reconcile", "bench", *ALLOW)
