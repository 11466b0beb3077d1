"""Measurements inside one process, where the rest of a process would hide the result."""

import gc
import os
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from kafka.net.compat import KafkaNetClient
from kafka.protocol.admin.client_quotas import DescribeClientQuotasRequest

from quota_ops.kafka.cluster import Cluster, open_cluster
from quota_ops.kafka.connection import Connection
from quota_ops.lab.kafka.broker import RunningBroker
from quota_ops.model.quotas.alteration import Alteration
from quota_ops.model.quotas.entity import Entity
from quota_ops.model.quotas.rows import DesiredRow, LedgerRow
from quota_ops.model.quotas.tables import ACTUAL, CLUSTERS, DESIRED, HOLDS, LEDGER
from quota_ops.sql.job import diff_runs
from quota_ops.sql.spark import SparkEngine, local_session
from quota_ops.store.places import parquet
from quota_ops.store.places.run_store import open_place

BATCH = 2_500


def describe_ratios(broker: RunningBroker, entities: int, runs: int) -> list[float]:
    """Return the times of describe divided by the bare library's, without garbage collection."""
    connection = Connection.parse(
        f"bootstrap.servers={broker.bootstrap()}\n", name="bench", source="the benchmark"
    )
    bare = KafkaNetClient(bootstrap_servers=broker.bootstrap(), receive_message_max_bytes=2**31 - 1)
    bare.get_broker_version(timeout_ms=5_000)
    node = bare.least_loaded_node()
    request = DescribeClientQuotasRequest(components=[], strict=False)
    with open_cluster(connection, cluster_id=None, timeout=120) as cluster:
        _fill(cluster, entities)
        gc.disable()
        try:
            ratios = []
            for _ in range(runs + 1):
                ours = _seconds(cluster.describe)
                library = _seconds(
                    lambda: bare.send_and_receive(node, request, timeout_ms=120_000).entries
                )
                ratios.append(ours / library)
        finally:
            gc.enable()
            bare.close()
    return ratios[1:]


def _seconds(call: object) -> float:
    assert callable(call)
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def _fill(cluster: Cluster, entities: int) -> None:
    names = [Entity.of({"user": f"big-{number:06d}"}) for number in range(entities)]
    changes = (("producer_byte_rate", 1e6), ("consumer_byte_rate", 2e6))
    for start in range(0, entities, BATCH):
        cluster.apply([Alteration(name, changes) for name in names[start : start + BATCH]])
    deadline = time.monotonic() + 180
    while len(cluster.describe()) < 2 * entities and time.monotonic() < deadline:
        time.sleep(2)


def empty(broker: RunningBroker) -> None:
    """Clear every quota, and return when the broker shows none."""
    text = f"bootstrap.servers={broker.bootstrap()}"
    connection = Connection.parse(text, name="bench", source="a benchmark")
    with open_cluster(connection, cluster_id=broker.config.cluster_id) as cluster:
        keys: dict[Entity, list[str]] = {}
        for entity, key, _ in cluster.describe():
            keys.setdefault(entity, []).append(key)
        clears = [
            Alteration(entity, tuple((key, None) for key in held)) for entity, held in keys.items()
        ]
        for start in range(0, len(clears), BATCH):
            cluster.apply(clears[start : start + BATCH])
        while cluster.describe():
            time.sleep(0.05)


def spark_diff_seconds(folder: Path, rows: int, runs: int) -> list[float]:
    """Return the seconds of a diff of so many rows on a warm session; 1 % of the rows differ."""
    _sides(folder, rows)
    with local_session([open_place(folder)]) as spark:
        engine = SparkEngine(spark)
        diff_runs(engine, [open_place(folder)])
        return [_seconds(lambda: diff_runs(engine, [open_place(folder)])) for _ in range(runs)]


def _sides(folder: Path, rows: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    keys = [("bench", f"user=user-{number:07d}", "producer_byte_rate") for number in range(rows)]
    desired = [
        DesiredRow(*key, 1e6 + (number % 100 == 0), "bench", None, "bench.yaml", number)
        for number, key in enumerate(keys)
    ]
    actual = [(*key, 1e6, True, None) for key in keys]
    at = "2026-01-01"
    ledger = [LedgerRow(*key, 1e6, "verified", "bench", None, None, "run", at, 1) for key in keys]
    sides = ((DESIRED, desired), (ACTUAL, actual), (LEDGER, ledger))
    no_holds: list[tuple[str, str, str]] = []
    for table, values in (
        *sides,
        (HOLDS, no_holds),
        (CLUSTERS, [("bench", "repair", False, None)]),
    ):
        content = parquet.to_bytes(table, parquet.from_rows(table, values))
        (folder / table.file).write_bytes(content)


def peak_pss(command: Sequence[str], environment: Mapping[str, str]) -> float:
    """Run a command; return the largest sum, in MB, of the PSS of all its descendants."""
    others = _family(os.getpid())  # such as the benchmarks' own broker
    child = subprocess.Popen(
        command, env=environment, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL
    )
    peak = 0.0
    while child.poll() is None:
        peak = max(peak, sum(_pss(pid) for pid in _family(os.getpid()) - others))
        time.sleep(1)
    if child.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {child.returncode}")
    return peak


def _family(root: int) -> set[int]:
    """Return all descendants of a process, without the process itself."""
    parents = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(stat.parent.name)] = int(stat.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
    family = {root}
    while more := {pid for pid, parent in parents.items() if parent in family} - family:
        family |= more
    return family - {root}


def _pss(pid: int) -> float:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0.0
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024
