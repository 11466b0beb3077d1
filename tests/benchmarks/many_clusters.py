"""Three hundred clusters in Airflow: a parse of the DAG file, the start of a task, a drift run."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from quota_ops.lab.airflow.server import local_bundle, start_airflow
from tests.airflow_runs import wait_for_run
from tests.benchmarks import inputs
from tests.benchmarks.bench import Bench, Row
from tests.benchmarks.measure import Spread

CLUSTERS = 300
ENTITIES = 100
BUILD = """\
import sys, time
from pathlib import Path
from quota_ops.airflow import build_dags
build_dags(Path(sys.argv[1]))
began = time.process_time()
build_dags(Path(sys.argv[1]))
print(time.process_time() - began)
"""
"""Prints the CPU seconds of building the DAGs when everything is imported."""
DAG_FILE = """\
from contextlib import contextmanager
from msgspec.structs import replace
from pathlib import Path
from quota_ops.airflow import build_dags, drift
open_run, root = drift.open_run, Path(__file__).parents[1]
@contextmanager
def open_snapshot(cluster, *given, **options):
    with open_run(cluster, *given, **options) as run:
        yield replace(run, actual=root / "snapshots" / f"{cluster.name}.jsonl")
drift.open_run = open_snapshot
globals().update(build_dags(root / "desired_state", drift_schedule=None))
"""
"""Describes snapshots in place of clusters."""
TASK_START = "reconcile_cluster-000"


def many_clusters(bench: Bench) -> Iterator[Row]:
    """Measure the parse of all DAGs, what a task start adds to it, and a drift run."""
    path, all_of_them = bench.home / "one", bench.home / "many"
    for root, clusters in ((path, 1), (all_of_them, CLUSTERS)):
        _write_clusters(root, clusters)
    what = f"{CLUSTERS} clusters in Airflow: "
    whole = _build(all_of_them, bench.runs)
    yield Row(f"{what}build all DAGs", whole.text(" s CPU"), "under 5 s", whole.median < 5)
    start, single = (_build(root, bench.runs, TASK_START) for root in (all_of_them, path))
    added = start.median - single.median
    yield Row(
        f"{what}what they add to the start of a task",
        f"{added * 1000:.0f} ms CPU",
        "under 50 ms",
        added < 0.05,
    )
    seconds, tasks = _run_drift(all_of_them, bench.home / "airflow")
    each = ", ".join(f"{name} {took:.0f} s" for name, took in tasks.items())
    yield Row(
        f"{what}a drift run, one worker host",
        f"{seconds:.0f} s ({each})",
        "under 600 s",
        seconds < 600,
    )


def _write_clusters(root: Path, clusters: int) -> None:
    (root / "snapshots").mkdir(parents=True)
    (root / "dags").mkdir()
    (root / "dags" / "quotas.py").write_text(DAG_FILE)
    for number in range(clusters):
        name = f"cluster-{number:03d}"
        folder = root / "desired_state" / name
        inputs.write_cluster(folder, f"B{number:021d}")
        inputs.write_quotas(folder, ENTITIES)
        inputs.write_snapshot(root / "snapshots" / f"{name}.jsonl", ENTITIES)


def _build(root: Path, runs: int, dag_id: str | None = None) -> Spread:
    """Return the CPU seconds of building the DAGs, or those at the start of a task of one DAG."""
    environment = dict(os.environ, AIRFLOW_HOME=str(root / "airflow"))
    if dag_id:
        environment["_AIRFLOW_PARSING_CONTEXT_DAG_ID"] = dag_id
    command = [sys.executable, "-c", BUILD, str(root / "desired_state")]
    built = [
        subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        for _ in range(runs)
    ]
    return Spread.of([float(completed.stdout.split()[-1]) for completed in built])


def _run_drift(root: Path, home: Path) -> tuple[float, dict[str, float]]:
    """Run the drift DAG once with the LocalExecutor; return its seconds, and those of each task."""
    environment = {
        "QUOTA_OPS_RUN_STORE": str(home / "store"),
        "AIRFLOW__CORE__DAGBAG_IMPORT_TIMEOUT": "300",
        "AIRFLOW__DAG_PROCESSOR__DAG_FILE_PROCESSOR_TIMEOUT": "600",
    }
    with start_airflow(home, local_bundle(root), environment=environment) as airflow:
        airflow.api.wait_for_dag("drift", 900)
        began = time.monotonic()
        run = airflow.api.trigger("drift")
        state = wait_for_run(airflow.api, "drift", run, 7200)
        seconds = time.monotonic() - began
        if state != "success":
            raise RuntimeError(f"the drift run ended as {state}: {json.dumps(str(airflow.log))}")
        tasks = {one["task_id"]: one["duration"] for one in airflow.api.list_tasks("drift", run)}
    return seconds, tasks
