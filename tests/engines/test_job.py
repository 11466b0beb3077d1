"""Input and results that a diff rejects."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from quota_ops.model.errors import InvalidInput
from quota_ops.model.quotas.rows import ActualRow, DesiredRow, LedgerRow
from quota_ops.model.quotas.tables import CLUSTERS, DIFFERENCES, OVERRIDES, Table
from quota_ops.sql.attempt import DiffAttempt
from quota_ops.sql.embedded import EmbeddedEngine
from quota_ops.sql.job import RESULTS, ComparedRun, Engine, EngineFailed, SomeDamaged, diff_runs
from quota_ops.store.places import parquet
from quota_ops.store.places.place import Place
from quota_ops.store.places.run_store import open_place
from quota_ops.store.run.folder import RunFolder
from tests.engines.runs import SPARK_IN_MATRIX, batches, differences, put
from tests.places import on_disk

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EMPTY = [parquet.to_bytes(table, parquet.from_rows(table, [])) for table in RESULTS]
ROW = ("user=a", "producer_byte_rate", 1.0)


def put_elsewhere(path: Path, side: str) -> Path:
    """Create a run folder of the cluster c, one side of which is of another."""
    row = ("elsewhere", *ROW)
    ledger = LedgerRow(*row, "verified", None, None, None, "run", "2026-11-01T00:00:00Z")
    return put(
        path,
        "c",
        desired=[DesiredRow(*row, None, None, "f", 1)] if side == "desired" else [],
        actual=[ActualRow(*row, True, None)] if side == "actual" else [],
        ledger=[ledger] if side == "ledger" else [],
    )


class Broken(EmbeddedEngine):
    """An engine whose results lack columns."""

    def decide(self, _sides: Mapping[Table[Any], Place]) -> tuple[pa.Table, pa.Table]:
        """Return a table without the columns of quota-ops."""
        return parquet.from_rows(OVERRIDES, []), pa.table({"cluster": ["c"], "kind": [1]})


@pytest.mark.parametrize("side", ["desired", "actual", "ledger"])
def test_a_side_of_another_cluster_is_refused(side: str, tmp_path: Path) -> None:
    """Rows of another cluster would look as if everything were removed, so nothing is decided."""
    folder = put_elsewhere(tmp_path, side)

    with pytest.raises(InvalidInput) as refused:
        diff_runs(EmbeddedEngine(), [open_place(folder)])

    assert str(refused.value) == (
        f"{tmp_path}/{side}.parquet is of the cluster elsewhere, but the run is of c\n"
        "  Nothing was changed. Each run needs its own folder, and each cluster its own ledger."
    )
    assert not RunFolder(open_place(folder)).has(DIFFERENCES.file)


def test_results_are_held_against_their_table(tmp_path: Path) -> None:
    """Results with wrong columns are not written; each discrepancy is listed."""
    folder = put(tmp_path, "c")

    with pytest.raises(InvalidInput) as refused:
        diff_runs(Broken(), [open_place(folder)])

    told = str(refused.value)
    assert told.startswith("differences is not a differences table: entity is missing, must be ")
    assert told.count("; ") == len(DIFFERENCES.columns) - 2
    assert "; kind is int64, must be string; " in told
    assert not RunFolder(open_place(folder)).has(DIFFERENCES.file)


def test_a_result_that_is_cut_short(session: "SparkSession", tmp_path: Path) -> None:
    """If what Spark wrote cannot be read, the engine failed, and no run has a result."""
    from quota_ops.sql.spark import COMPARED, SparkEngine  # noqa: PLC0415 - a JVM

    class Cut(SparkEngine):
        """Spark on a disk that loses the ends of files."""

        def compare(self, sides: Any, folders: Any, to: Place, settings: Any = None) -> None:
            super().compare(sides, folders, to, settings)
            for file in on_disk(to / COMPARED).rglob("part-*.parquet"):
                os.truncate(file, file.stat().st_size // 2)

    folder = put(tmp_path, "c", desired=[DesiredRow("c", *ROW, None, None, "f", 1)])

    with pytest.raises(EngineFailed, match=r"^the result of Spark .*\.parquet cannot be read: "):
        diff_runs(Cut(session), [open_place(folder)])

    assert not RunFolder(open_place(folder)).has(DIFFERENCES.file)


@pytest.mark.parametrize("clusters", [(), ("c", "d")])
def test_a_run_is_of_one_cluster(clusters: tuple[str, ...], tmp_path: Path) -> None:
    """A run folder without a cluster, or of two, is rejected."""
    folder = RunFolder(open_place(put(tmp_path, "c")))
    folder.write_table(CLUSTERS, [(cluster, "repair", False, None) for cluster in clusters])

    with pytest.raises(InvalidInput) as refused:
        diff_runs(EmbeddedEngine(), [folder.place])

    assert str(refused.value) == (
        f"{tmp_path}/clusters.parquet must have one cluster, it has {len(clusters)}"
    )


@SPARK_IN_MATRIX
def test_what_an_earlier_diff_left_is_written_anew(engine: Engine, tmp_path: Path) -> None:
    """A repeated diff of a run folder, now without differences, replaces the earlier result."""
    folder = put(tmp_path, "c", desired=[DesiredRow("c", *ROW, None, None, "f", 1)])
    diff_runs(engine, [open_place(folder)])
    assert (len(differences(folder)), len(batches(folder))) == (1, 1)

    put(tmp_path, "c")
    diff_runs(engine, [open_place(folder)])

    assert (differences(folder), batches(folder)) == ((), [])


def put_damaged_fleet(root: Path) -> list[Path]:
    """Create four runs with one row each: one is whole, three are damaged."""
    row = DesiredRow("", *ROW, None, None, "f", 1)
    names = ("whole", "missing", "types", "pages")
    fleet = {
        name: put(root / name / "run", name, desired=[row._replace(cluster=name)]) for name in names
    }
    (fleet["missing"] / "ledger.parquet").unlink()
    other = pa.table({"cluster": ["types"], "entity": [1], "key": ["k"]})
    pq.write_table(other, fleet["types"] / "holds.parquet")
    pages = fleet["pages"] / "desired.parquet"
    content = pages.read_bytes()
    at = content.index(b"user=a")
    pages.write_bytes(content[: at - 12] + b"\xff" * 24 + content[at + 12 :])
    return list(fleet.values())


def test_damaged_input_costs_its_run_alone(engine: Engine, tmp_path: Path) -> None:
    """Each run that cannot be compared is named with its file and reason; the others are written.

    Damage in the middle of a file shows only when an engine reads it.
    """
    whole, missing, types, pages = put_damaged_fleet(tmp_path)

    with pytest.raises(SomeDamaged) as refused:
        diff_runs(engine, list(map(open_place, (whole, missing, types, pages))))

    wrong = "entity is int64, must be string; held is missing, must be string; key is not one of"
    assert refused.value.message.split("\n  ")[:3] == [
        "3 of 4 clusters cannot be compared:",
        f"missing: {missing}/ledger.parquet is missing: the stage that writes it has not run",
        f"types: {types}/holds.parquet is not a holds table: {wrong} its columns",
    ]
    assert (
        f"\n  pages: {pages}/desired.parquet cannot be read as a Parquet file"
        in refused.value.message
    )
    assert [row.entity for row in differences(whole)] == ["user=a"]
    assert not any((path / DIFFERENCES.file).exists() for path in (missing, types, pages))
    assert [path.name for path in whole.iterdir() if path.is_dir()] == []


def test_an_attempt_that_ended_later_is_no_result(tmp_path: Path) -> None:
    """Of two attempts to compare a run at the same time, the first to end is the result."""
    folder = open_place(put(tmp_path, "c"))
    run = ComparedRun("c", folder)
    with DiffAttempt.begin([run]) as first, DiffAttempt.begin([run]) as second:
        first.publish(0, EMPTY)
        (folder / DIFFERENCES.file).replace(b"the result of the first")
        with pytest.raises(InvalidInput, match="another attempt to compare this run ended first"):
            second.publish(0, EMPTY)

    assert (folder / DIFFERENCES.file).read() == b"the result of the first"
    with DiffAttempt.begin([run]) as third:
        third.publish(0, EMPTY)
    assert differences(tmp_path) == ()
    manifests = [name for name in folder.list() if name.startswith("diff-")]
    assert manifests == ["diff-0001.json", "diff-0002.json"]
