"""Input and results that a diff rejects."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from quota_ops.model.errors import InvalidInput
from quota_ops.model.rows import ActualRow, DesiredRow, LedgerRow
from quota_ops.model.tables import BATCHES, CLUSTERS, DIFFERENCES, Table
from quota_ops.sql.embedded import EmbeddedEngine
from quota_ops.sql.job import diff_runs
from quota_ops.store import parquet
from quota_ops.store.place import Place
from quota_ops.store.run_folder import RunFolder
from quota_ops.store.run_store import open_place
from tests.engines.runs import differences, put

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


class Broken:
    """An engine whose results lack columns."""

    def decide(self, _sides: Mapping[Table[Any], Sequence[Place]]) -> tuple[pa.Table, pa.Table]:
        """Return a table without the columns of quota-ops."""
        return pa.table({"cluster": ["c"], "kind": [1]}), parquet.from_rows(BATCHES, [])


@pytest.mark.parametrize("side", ["desired", "actual", "ledger"])
def test_a_side_of_another_cluster_is_refused(side: str, tmp_path: Path) -> None:
    """Rows of another cluster would look as if everything were removed, so nothing is decided."""
    folder = put_elsewhere(tmp_path, side)

    with pytest.raises(InvalidInput) as refused:
        diff_runs(EmbeddedEngine(), [open_place(folder)])

    assert str(refused.value) == (
        f"{tmp_path}/{side}.parquet is of another cluster: elsewhere; the run is of c\n"
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
    required = [column for column in DIFFERENCES.columns if not column.added]
    assert told.count("; ") == len(required) - 2
    assert "; kind is int64, must be string; " in told
    assert not RunFolder(open_place(folder)).has(DIFFERENCES.file)


@pytest.mark.parametrize("clusters", [(), ("c", "d")])
def test_a_run_is_of_one_cluster(clusters: tuple[str, ...], tmp_path: Path) -> None:
    """A run folder without a cluster, or of two, is rejected."""
    folder = RunFolder(open_place(put(tmp_path, "c")))
    since = "2026-11-01T00:00:00Z"
    folder.write_table(CLUSTERS, [(one, "repair", False, since, since) for one in clusters])

    with pytest.raises(InvalidInput) as refused:
        diff_runs(EmbeddedEngine(), [folder.place])

    assert str(refused.value) == (
        f"{tmp_path}/clusters.parquet must have one cluster, it has {len(clusters)}"
    )


def test_what_an_earlier_diff_left_is_written_anew(tmp_path: Path) -> None:
    """A repeated diff of a run folder replaces the result of the earlier diff."""
    folder = put(tmp_path, "c", desired=[DesiredRow("c", *ROW, None, None, "f", 1)])
    diff_runs(EmbeddedEngine(), [open_place(folder)])
    assert len(differences(folder)) == 1

    put(tmp_path, "c")
    diff_runs(EmbeddedEngine(), [open_place(folder)])

    assert differences(folder) == ()
