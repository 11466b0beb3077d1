"""Run folders with given sides, and the results of an engine in them."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from quota_ops.model.quotas.difference import Action, Difference, Kind
from quota_ops.model.quotas.rows import ActualRow, DesiredRow, LedgerRow
from quota_ops.model.quotas.tables import (
    ACTUAL,
    CLUSTERS,
    DESIRED,
    DIFFERENCES,
    HOLDS,
    LEDGER,
    Table,
)
from quota_ops.sql.embedded import EmbeddedEngine, judge
from quota_ops.sql.job import RESULTS, SIDES
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


class Sides(NamedTuple):
    """The rows of one cluster, its held entities with their holds, and its policy."""

    desired: Sequence[DesiredRow] = ()
    actual: Sequence[ActualRow] = ()
    ledger: Sequence[LedgerRow] = ()
    held: Mapping[str, str] = MappingProxyType({})
    drift: str = "repair"
    clear_unmanaged: bool = False
    invalid_files: str | None = None


def put_clusters(path: Path, clusters: Mapping[str, Sides]) -> Path:
    """Create a folder with the sides of clusters, each side in one file."""
    path.mkdir(parents=True, exist_ok=True)
    folder = RunFolder(open_place(path))
    given = clusters.values()
    folder.write_table(DESIRED, [row for sides in given for row in sides.desired])
    folder.write_table(ACTUAL, [row for sides in given for row in sides.actual])
    folder.write_table(LEDGER, [row for sides in given for row in sides.ledger])
    held = ((name, *hold) for name, sides in clusters.items() for hold in sides.held.items())
    folder.write_table(HOLDS, list(held))
    folder.write_table(CLUSTERS, [(name, *sides[4:]) for name, sides in clusters.items()])
    return path


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
    """Create a run folder with the sides of one cluster."""
    sides = Sides(desired, actual, ledger, held, drift, clear_unmanaged, invalid_files)
    return put_clusters(path, {cluster: sides})


def decide_all(
    engine: "EmbeddedEngine | SparkEngine",
    path: Path,
    sides: Mapping[Table[Any], Path],
    clusters: Iterable[str],
) -> list[pa.Table]:
    """Return RESULTS of files with the rows of many clusters, all in order."""
    places = {table: open_place(file) for table, file in sides.items()}
    if isinstance(engine, EmbeddedEngine):
        return list(engine.decide(places))
    written = open_place(path / f"written-{uuid4().hex}")
    of_each = {table: [place] for table, place in places.items()}
    engine.compare(of_each, dict.fromkeys(clusters, "all"), written)
    files = list((path / written.name / "_compared" / "folder=all").glob("*.parquet"))
    assert len(files) <= 1
    if not files:
        return [parquet.from_rows(table, []) for table in RESULTS]
    return list(judge(pq.read_table(files[0], partitioning=None), places))


def decide_clusters(
    engine: "AnyEngine", path: Path, clusters: Mapping[str, Sides]
) -> dict[str, list[Difference]]:
    """Return the differences of each cluster in order, all found by one job."""
    put_clusters(path, clusters)
    sides = {table: path / table.file for table in SIDES}
    found = decide_all(engine, path, sides, clusters)[RESULTS.index(DIFFERENCES)]
    differences: dict[str, list[Difference]] = {cluster: [] for cluster in clusters}
    for row in parquet.to_rows(parquet.conform(DIFFERENCES, found)):
        difference = Difference(*row)._replace(kind=Kind(row[3]), action=Action(row[4]))
        differences[difference.cluster].append(difference)
    return differences


def differences(path: Path) -> tuple[Difference, ...]:
    """Return the differences that an engine wrote."""
    return RunFolder(open_place(path)).differences()


def batches(path: Path) -> list[Difference]:
    """Return the rows of the batches that an engine wrote, batch after batch."""
    return [row for rows in RunFolder(open_place(path)).batches().values() for row in rows]
