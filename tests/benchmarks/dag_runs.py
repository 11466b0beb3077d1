"""Runs of the reconcile DAG in a real Airflow, from the trigger to the end of verify."""

from collections.abc import Iterator

from quota_ops.lab.airflow.server import local_bundle, start_airflow
from quota_ops.lab.demo.lab import run_dag
from quota_ops.lab.spark_server import start_spark_server
from tests.benchmarks import inputs
from tests.benchmarks.against_bare import SMALL, empty
from tests.benchmarks.bench import Bench, Row
from tests.benchmarks.measure import Spread

_DAGS = """\
from pathlib import Path

from quota_ops.airflow import build_dags

for engine in ("spark", "embedded"):
    dags = build_dags(Path({desired_state!r}), dag_id_prefix=f"{{engine}}_", engine=engine)
    globals().update(dags)
"""
_TARGETS = {"spark": 20.0, "embedded": 14.0}
_ALLOW = {"allow": ["conflict", "takeover"], "reason": "benchmark"}


def dag_runs(bench: Bench) -> Iterator[Row]:
    """Measure runs that move 1 % of 12 and of 10,000 entities, each with two keys.

    The first run of each DAG is not counted: it also adopts all rows.
    """
    home = bench.home / "airflow"
    (home / "dags").mkdir(parents=True)
    text = _DAGS.format(desired_state=str(bench.cluster.parent))
    (home / "dags" / "bench_dags.py").write_text(text)
    spark = start_spark_server(bench.home / "spark-server")
    environment = bench.environment() | spark.airflow_environment
    airflow = start_airflow(home, local_bundle(home / "dags"), environment=environment)
    try:
        spark.warm_up()
        for entities in (12, SMALL):
            for engine, target in _TARGETS.items():
                empty(bench)
                inputs.write_cluster(bench.cluster, bench.broker.config.cluster_id)
                seconds = []
                for step in range(bench.runs + 1):
                    inputs.write_quotas(bench.cluster, entities, moved=100, step=step)
                    run = run_dag(airflow.api, f"{engine}_reconcile_bench", _ALLOW, _ignore)
                    if run.state != "success" or run.verified is None:
                        raise RuntimeError(run.trouble)
                    seconds.append(run.verified)
                spread = Spread.of(seconds[1:])
                what = f"DAG run, engine {engine}, {2 * entities:,} rows: trigger to verified"
                yield Row(what, spread.text(" s"), f"under {target:g} s", spread.median < target)
    finally:
        airflow.stop()
        spark.stop()


def _ignore(_progress: str) -> None:
    """Show no progress."""
