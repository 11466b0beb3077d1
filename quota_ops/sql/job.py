"""The diff of one or many runs: check the input tables, run an engine and write the results."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import pyarrow as pa

from quota_ops.model.errors import InvalidInput
from quota_ops.model.tables import (
    ACTUAL,
    BATCHES,
    CLUSTERS,
    DESIRED,
    DIFFERENCES,
    HOLDS,
    LEDGER,
    Table,
)
from quota_ops.store import parquet
from quota_ops.store.place import Place

SIDES: tuple[Table[Any], ...] = (DESIRED, ACTUAL, LEDGER, HOLDS, CLUSTERS)
RESULTS: tuple[Table[Any], ...] = (DIFFERENCES, BATCHES)


class Engine(Protocol):
    """An engine that runs diff.sql and batches.sql over Parquet files."""

    def decide(self, sides: Mapping[Table[Any], Sequence[Place]]) -> tuple[pa.Table, pa.Table]:
        """Return the tables DIFFERENCES and BATCHES, computed from all files of each side."""
        ...


def diff_runs(engine: Engine, folders: Sequence[Place]) -> None:
    """Write differences.parquet and batches.parquet to each run folder, computed by one job.

    Each folder has the tables desired, actual, ledger, holds and clusters of one cluster. Raises
    InvalidInput when a table is missing, has other columns or rows of another cluster, and when
    two folders belong to the same cluster.
    """
    clusters = [_read_cluster(folder) for folder in folders]
    if len(set(clusters)) != len(clusters):
        raise InvalidInput("two of the runs are of the same cluster; diff them one by one")
    sides = {table: [folder / table.file for folder in folders] for table in SIDES}
    results = engine.decide(sides)
    for table, rows in zip(RESULTS, results, strict=True):
        conformed = parquet.conform(table, rows, table.name)
        for folder, cluster in zip(folders, clusters, strict=True):
            own = conformed if len(folders) == 1 else _select_rows(cluster, conformed)
            (folder / table.file).replace(parquet.to_bytes(table, own))


def _select_rows(cluster: str, rows: pa.Table) -> pa.Table:
    from pyarrow import compute  # noqa: PLC0415 - 50 ms that a single run need not wait

    return rows.filter(compute.equal(rows["cluster"], cluster))


def _read_cluster(folder: Place) -> str:
    """Return the cluster id of a run folder, after checking that each side has that id."""
    found: dict[Place, set[str | None]] = {}
    for table in SIDES:
        place = folder / table.file
        try:
            found[place] = parquet.read_clusters(table, place)
        except FileNotFoundError:
            raise InvalidInput(
                f"{place} is missing: the stage that writes it has not run"
            ) from None
    place = folder / CLUSTERS.file
    rows = parquet.from_bytes(CLUSTERS, place.read(), str(place))
    if rows.num_rows != 1:
        raise InvalidInput(f"{place} must have one cluster, it has {rows.num_rows}")
    cluster = str(rows["cluster"][0].as_py())
    for place, clusters in found.items():
        if others := clusters - {cluster}:
            raise InvalidInput(
                f"{place} is of another cluster: {min(map(str, others))}; the run is of {cluster}",
                "Nothing was changed. "
                "Each run needs its own folder, and each cluster its own ledger.",
            )
    return cluster
