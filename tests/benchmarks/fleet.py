"""A fleet in one Spark job: a hundred clusters whose quotas all differ, one worker against two."""

import json
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from quota_ops.model.quotas.rows import DesiredRow, LedgerRow
from quota_ops.model.quotas.tables import ACTUAL, CLUSTERS, DESIRED, HOLDS, LEDGER, Table
from quota_ops.store.places import parquet
from quota_ops.store.places.run_store import open_place
from quota_ops.store.run.folder import RunFolder
from tests.benchmarks.bench import Bench, Row
from tests.benchmarks.measure import Spread
from tests.engines.submitting import standalone_cluster, submit

FLEET = 100
ENTITIES = 10_000
WORKERS = (1, 2)


def fleet(bench: Bench) -> Iterator[Row]:
    """Measure the stages of the job with one worker of one core, and with two, in turn."""
    folders = [_write_run(bench.home / "fleet", number) for number in range(FLEET)]
    walls: dict[int, list[float]] = {workers: [] for workers in WORKERS}
    busiest: dict[int, list[float]] = {workers: [] for workers in WORKERS}
    with standalone_cluster(_new(bench.home / "spark"), workers=max(WORKERS)) as master:
        for number in range(bench.runs):
            for workers in WORKERS:
                events = _new(bench.home / f"events-{number}-{workers}")
                _run_job(master, folders, events, workers)
                wall, cpu = _read_events(events)
                walls[workers].append(wall)
                busiest[workers].append(cpu)
    assert len(RunFolder(open_place(folders[-1])).differences()) == ENTITIES
    what = f"diff of {FLEET} clusters x {ENTITIES:,}, all differing, driver of 1 GiB: "
    for workers in WORKERS:
        seconds = Spread.of(walls[workers]).text(" s")
        yield Row(f"{what}stages on {workers} worker(s)", seconds, "completes", met=True)
    for name, measured in (("stages", walls), ("CPU of the busiest worker", busiest)):
        ratio = Spread.of([one / two for one, two in zip(*measured.values(), strict=True)])
        yield Row(
            f"the same, {name}: one worker to two",
            ratio.text(" times"),
            "1.3 times",
            ratio.median >= 1.3,
        )


def _run_job(master: str, folders: list[Path], events: Path, workers: int) -> None:
    settings = {
        "spark.cores.max": str(workers),
        "spark.driver.memory": "1g",
        "spark.executor.memory": "768m",
        "spark.executor.extraJavaOptions": "-XX:+UseSerialGC",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": events.as_uri(),
        "spark.eventLog.compress": "false",
        "spark.eventLog.rolling.enabled": "false",
    }
    job = submit(master, *folders, settings=settings)
    _, complaint = job.communicate()
    if job.returncode != 0:
        raise RuntimeError(complaint[-4000:])


def _read_events(folder: Path) -> tuple[float, float]:
    """Return the seconds in which a stage ran, and the CPU seconds of the busiest worker's tasks.

    The second does not depend on what else this machine does, nor on its number of cores.
    """
    (log,) = folder.iterdir()
    events = list(map(json.loads, log.read_text().splitlines()))
    spans = sorted(
        (event["Stage Info"]["Submission Time"], event["Stage Info"]["Completion Time"])
        for event in events
        if event["Event"] == "SparkListenerStageCompleted"
    )
    total = end = 0
    for began, ended in spans:
        total += max(0, ended - max(began, end))
        end = max(end, ended)
    cpu: Counter[str] = Counter()
    for event in events:
        if event["Event"] == "SparkListenerTaskEnd":
            cpu[event["Task Info"]["Executor ID"]] += event["Task Metrics"]["Executor CPU Time"]
    return total / 1e3, max(cpu.values()) / 1e9


def _verify(cluster: str, entity: str, key: str) -> LedgerRow:
    at = "2026-01-01T00:00:00Z"
    return LedgerRow(cluster, entity, key, 1e6, "verified", "bench", None, None, "run", at, 1)


def _write_run(root: Path, number: int) -> Path:
    cluster = f"cluster-{number:03d}"
    folder = root / cluster / "run"
    folder.mkdir(parents=True)
    keys = [(cluster, f"user=user-{one:07d}", "producer_byte_rate") for one in range(ENTITIES)]
    sides: tuple[tuple[Table[Any], list[Any]], ...] = (
        (DESIRED, [DesiredRow(*key, 2e6, "bench", None, "bench.yaml", 1) for key in keys]),
        (ACTUAL, [(*key, 1e6, True, None) for key in keys]),
        (LEDGER, [_verify(*key) for key in keys]),
        (HOLDS, []),
        (CLUSTERS, [(cluster, "repair", False, None)]),
    )
    for table, rows in sides:
        content = parquet.to_bytes(table, parquet.from_rows(table, rows))
        (folder / table.file).write_bytes(content)
    return folder


def _new(folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    return folder
