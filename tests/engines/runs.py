"""Run folders with given sides, and the results of an engine in them."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from quota_ops.model.quotas.difference import Difference
from quota_ops.model.quotas.rows import ActualRow, BatchRow, DesiredRow, LedgerRow
from quota_ops.model.quotas.tables import ACTUAL, CLUSTERS, DESIRED, HOLDS, LEDGER, Table
from quota_ops.sql.embedded import EmbeddedEngine
from quota_ops.sql.job import RESULTS
from quota_ops.store.places import parquet
from quota_ops.store.places.run_store import open_place
from quota_ops.store.run.folder import RunFolder

if TYPE_CHECKING:
    from quota_ops.sql.spark import SparkEngine

    AnyEngine = EmbeddedEngine | SparkEngine


SPARK_IN_MATRIX = pytest.mark.parametrize(
    "engine", ["embedded", pytest.param("spark", marks=pytest.mark.matrix)], indirect=True
)
"""For a test that takes Spark long, while others in `make test` run the same SQL on Spark."""


def put(
    path: Path,
    cluster: str,
    *,
    desired: Sequence[DesiredRow] = (),
    actual: Sequence[ActualRow] = (),
    ledger: Sequence[LedgerRow] = (),
    held: Mapping[str, str] = MappingProxyType({}),
    drift: str = "repair",
    clear_unmanaged: bool = False,
    invalid_files: str | None = None,
) -> Path:
    """Create a run folder with the sides of one cluster; `held` are entities, and their hold."""
    path.mkdir(parents=True, exist_ok=True)
    folder = RunFolder(open_place(path))
    folder.write_table(DESIRED, desired)
    folder.write_table(ACTUAL, actual)
    folder.write_table(LEDGER, ledger)
    folder.write_table(HOLDS, [(cluster, entity, text) for entity, text in held.items()])
    folder.write_table(CLUSTERS, [(cluster, drift, clear_unmanaged, invalid_files)])
    return path


def decide_all(
    engine: "EmbeddedEngine | SparkEngine",
    path: Path,
    sides: Mapping[Table[Any], Path],
    clusters: Iterable[str],
) -> list[pa.Table]:
    """Return RESULTS of files with the rows of many clusters, all in order."""
    places = {table: [open_place(file)] for table, file in sides.items()}
    if isinstance(engine, EmbeddedEngine):
        return list(engine.decide(places))
    written = path / f"written-{uuid4().hex}"
    engine.write_results(places, dict.fromkeys(clusters, "all"), open_place(written))
    found = []
    for table in RESULTS:
        files = list((written / table.name / "folder=all").glob("*.parquet"))
        assert len(files) <= 1
        found.append(pq.read_table(files[0]) if files else parquet.from_rows(table, []))
    return found


def differences(path: Path) -> tuple[Difference, ...]:
    """Return the differences that an engine wrote."""
    return RunFolder(open_place(path)).differences()


def batches(path: Path) -> list[BatchRow]:
    """Return the rows of the batches that an engine wrote, batch after batch."""
    return [row for rows in RunFolder(open_place(path)).batches().values() for row in rows]
