"""Measures a run store in a bucket of a real S3 server against a local folder."""

import json
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest

from quota_ops.store.places.object_client import open_client
from quota_ops.store.places.run_store import ENVIRONMENT, RunStore, open_place
from tests.benchmarks import inputs
from tests.benchmarks.against_bare import SMALL
from tests.benchmarks.bench import Bench, Row, row_of_seconds
from tests.benchmarks.measure import pair
from tests.objects.server import start_s3

RUNS, CLUSTERS = 10_000, 100
_BEGAN = datetime(2026, 1, 1, tzinfo=UTC)


def buckets(bench: Bench) -> Iterator[Row]:
    """Measure a plan with the run store in a bucket, and the list of runs among ten thousand."""
    inputs.write_cluster(bench.cluster, bench.broker.config.cluster_id)
    inputs.write_quotas(bench.cluster, SMALL)
    with start_s3(bench.home / "s3") as s3, _environment(s3.environment()):
        s3.create_bucket("runs")
        there = {**s3.environment(), ENVIRONMENT: "s3://runs/plans"}
        measured = pair(
            partial(bench.quota_ops, "plan", "bench", **there),
            partial(bench.quota_ops, "plan", "bench"),
            bench.runs,
        )
        ratio = measured.ratio("wall")
        local = measured.spread("wall", other=True).median
        yield Row(
            f"plan, 10,000 entities, runs in a bucket: to a local folder ({local:.2f} s)",
            ratio.text(" times"),
            "1.5 times",
            ratio.median <= 1.5,
        )
        fill(RunStore(open_place("s3://runs/many")))
        many = {**there, ENVIRONMENT: "s3://runs/many"}
        last = partial(bench.quota_ops, "runs", "--last", "20", **many)
        yield row_of_seconds("runs --last 20 of 10,000 runs in a bucket", last, bench.runs, 2.0)


@contextmanager
def _environment(values: Mapping[str, str]) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in values.items():
            patch.setenv(name, value)
        yield
        open_client.cache_clear()


def fill(store: RunStore) -> None:
    """Store the first file and the number of many runs, as if each had been killed at once."""
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(partial(_store_run, store), range(1, RUNS + 1)))


def _store_run(store: RunStore, number: int) -> None:
    began = _BEGAN + timedelta(minutes=number)
    cluster, run = f"c{number % CLUSTERS:03d}", f"{began:%Y-%m-%dT%H-%M-%SZ}-{number:04x}"
    about = {"run": run, "cluster": cluster, "started": began.isoformat(), "sequence": number}
    (store.runs_of(cluster) / run / "run.json").replace(json.dumps(about).encode())
    taken = store.sequence / f"{number // 1000:08d}.runs" / f"{number:08d}.json"
    taken.replace(json.dumps({"run": f"{cluster}/{run}"}).encode())
