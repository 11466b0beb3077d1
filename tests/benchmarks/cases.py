"""The cases: each returns rows of (what, measured, target)."""

import os
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from quota_ops.cli.review_files import SUMMARY_LIMIT
from quota_ops.report.review.annotations import as_code_quality, as_sarif, list_annotations
from quota_ops.report.review.comment import as_comment
from tests.benchmarks import bulk, inputs
from tests.benchmarks.against_bare import LARGE, SMALL, plan
from tests.benchmarks.against_peers import large, peers
from tests.benchmarks.bench import Bench, Row, row_of_seconds
from tests.benchmarks.buckets import buckets
from tests.benchmarks.clients import clients
from tests.benchmarks.dag_runs import dag_runs
from tests.benchmarks.fleet import fleet
from tests.benchmarks.growth import growth
from tests.benchmarks.histories import histories
from tests.benchmarks.limits import limits
from tests.benchmarks.many_clusters import many_clusters
from tests.benchmarks.measure import Spread
from tests.benchmarks.pages import pages
from tests.benchmarks.usage import usage
from tests.unit.review_sample import large_review


def start_up(bench: Bench) -> Iterator[Row]:
    """Measure commands that need no broker."""
    inputs.write_cluster(bench.cluster, bench.broker.config.cluster_id)
    inputs.write_quotas(bench.cluster, 10)
    small = [
        ("quota-ops --help", partial(bench.quota_ops, "--help"), 0.3),
        ("check of 10 entities", partial(bench.quota_ops, "check"), 0.3),
    ]
    for what, once, target in small:
        yield row_of_seconds(what, once, bench.runs, target)
    inputs.write_quotas(bench.cluster, SMALL)
    check = partial(bench.quota_ops, "check")
    yield row_of_seconds("check of 10,000 entities", check, bench.runs, 1.0)
    ten = Spread.of([check().wall for _ in range(bench.runs)])
    inputs.write_quotas(bench.cluster, 4 * SMALL)
    forty = Spread.of([check().wall for _ in range(bench.runs)])
    ratio = forty.median / ten.median
    yield Row("check: 40,000 entities to 10,000", f"{ratio:.2f} times", "4 times", ratio < 4.4)


def describe(bench: Bench) -> Iterator[Row]:
    """Measure a describe of 100,000 entities against the library's own decoding."""
    ratios = bulk.describe_ratios(bench.broker, LARGE, bench.runs)
    spread = Spread.of(ratios)
    yield Row(
        "describe of 100,000 entities: to the library's own decode",
        spread.text(" times"),
        "1.3 times",
        spread.median <= 1.3,
    )


def spark(bench: Bench) -> Iterator[Row]:
    """Measure the diff of a million rows on a warm session."""
    seconds = Spread.of(bulk.spark_diff_seconds(bench.home / "million", 1_000_000, bench.runs))
    yield Row(
        "diff of 1,000,000 rows, Spark, warm, driver of 2 GiB",
        seconds.text(" s"),
        "under 4 s",
        seconds.median < 4,
    )


def resolve(bench: Bench) -> Iterator[Row]:
    """Measure the resolution of one client, from a snapshot."""
    snapshot = inputs.write_snapshot(bench.home / "snapshot.jsonl", SMALL)
    resolve = partial(bench.quota_ops, "resolve", "--actual", str(snapshot))
    one = partial(resolve, "--user", "user-000007", "--client-id", "app-7")
    yield row_of_seconds("resolve of one client, 10,000 entities", one, bench.runs, 0.5)


def one_off(bench: Bench) -> Iterator[Row]:
    """Measure what an operator types at night on a small cluster: a look, and one changed limit."""
    inputs.write_cluster(bench.cluster, bench.broker.config.cluster_id)
    inputs.write_quotas(bench.cluster, 10)
    ten_mib = ("--names", "user=night", "--add", "producer_byte_rate=10 MiB")
    yield row_of_seconds(
        "alter", partial(bench.quota_ops, "alter", "bench", *ten_mib), bench.runs, 0.6
    )
    yield row_of_seconds("describe", partial(bench.quota_ops, "describe", "bench"), bench.runs, 0.6)
    yield row_of_seconds("ping", partial(bench.quota_ops, "ping", "bench"), bench.runs, 0.6)


def comment(bench: Bench) -> Iterator[Row]:
    """Measure the comment, the summary and the annotations of a branch with 10,000 changes."""
    times = []
    for _ in range(bench.runs):
        began = time.monotonic()
        review = large_review(SMALL)
        annotations = list_annotations(review)
        for text in (as_comment(review), as_comment(review, SUMMARY_LIMIT)):
            assert len(text) <= SUMMARY_LIMIT
        assert as_sarif(annotations, "1.0")
        assert as_code_quality(annotations)
        times.append(time.monotonic() - began)
    spread = Spread.of(times)
    what = "comment, summary and annotations of 10,000 changes"
    yield Row(what, spread.text(" s"), "under 2 s", spread.median < 2)


def demo(bench: Bench) -> Iterator[Row]:
    """Measure the whole demo, and the memory of broker, Airflow and Spark together."""
    began = time.monotonic()
    peak = bulk.peak_pss([str(Path(sys.executable).with_name("quota-ops")), "demo"], os.environ)
    seconds = time.monotonic() - began
    del bench
    yield Row("quota-ops demo", f"{seconds:.0f} s", "under 240 s", seconds < 240)
    yield Row(
        "the same, peak PSS of all processes", f"{peak:.0f} MB", "under 2,500 MB", peak < 2500
    )


CASES = {
    "start": start_up,
    "one_off": one_off,
    "plan": plan,
    "limits": limits,
    "growth": growth,
    "buckets": buckets,
    "peers": peers,
    "large": large,
    "spark": spark,
    "resolve": resolve,
    "clients": clients,
    "history": histories,
    "comment": comment,
    "pages": pages,
    "demo": demo,
    "dag_runs": dag_runs,
    "many_clusters": many_clusters,
    "fleet": fleet,
    "usage": usage,
    "describe": describe,
}
"""In the order in which they run: one_off needs a small cluster, describe leaves a large one."""
