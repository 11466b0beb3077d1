"""The diff by both engines, case by case, and the input that it rejects."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from quota_ops.model.errors import InvalidInput
from quota_ops.model.quotas.difference import WRITES, Difference
from quota_ops.model.quotas.tables import ACTUAL, DESIRED, DIFFERENCES, Table
from quota_ops.sql import text
from quota_ops.sql.embedded import EmbeddedEngine
from quota_ops.sql.job import SIDES, diff_runs
from quota_ops.store.places.run_store import open_place
from tests.engines.cases import Case, cases
from tests.engines.runs import Sides, put

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from quota_ops.sql.spark import SparkEngine

CASES = cases()


def list_clusters() -> dict[str, Sides]:
    """Return the sides of the cluster of every case."""
    return {
        case.cluster: Sides(
            case.desired,
            case.actual,
            case.ledger,
            case.held,
            case.drift,
            case.clear_unmanaged,
            case.invalid_files,
        )
        for case in CASES
    }


@pytest.mark.parametrize("case", CASES, ids=[f"{one.cluster} {one.name}" for one in CASES])
def test_case(case: Case, decided: dict[str, list[Difference]]) -> None:
    """Every row gets the kind and the action in the case, and what it sets or clears is in a batch.

    There is no other row, and none in another batch.
    """
    rows = decided[case.cluster]

    assert tuple(sorted((r.entity, r.key, r.kind.value, r.action.value) for r in rows)) == (
        case.expected
    )
    assert all((row.batch is not None) == (row.action in WRITES) for row in rows)


@pytest.mark.parametrize("side", SIDES, ids=lambda side: side.name)
def test_a_side_that_is_missing_or_truncated_is_named(
    side: Table[Any], embedded: EmbeddedEngine, tmp_path: Path
) -> None:
    """A run folder without one of its sides, or with a part, is an error, and decides nothing."""
    folder = put(tmp_path, "c")
    content = (folder / side.file).read_bytes()
    for left, why in (
        (content[:-9], " cannot be read as a Parquet file"),
        (None, " is missing: the stage"),
    ):
        (folder / side.file).unlink()
        if left is not None:
            (folder / side.file).write_bytes(left)

        with pytest.raises(InvalidInput) as error:
            diff_runs(embedded, [open_place(folder)])

        assert f"{folder / side.file}{why}" in error.value.message
        assert not (folder / DIFFERENCES.file).exists()


def test_every_discrepancy_of_a_table_is_named(embedded: EmbeddedEngine, tmp_path: Path) -> None:
    """A file with other columns is rejected, with each discrepancy by name."""
    folder = put(tmp_path, "c")
    (folder / ACTUAL.file).write_bytes((folder / "desired.parquet").read_bytes())

    with pytest.raises(InvalidInput) as refused:
        diff_runs(embedded, [open_place(folder)])

    assert refused.value.message == (
        f"{folder / ACTUAL.file} is not a actual table: in_scope is missing, must be boolean; "
        "hands_off is missing, must be string; "
        + "; ".join(
            f"{name} is not one of its columns"
            for name in DESIRED.names
            if name not in ACTUAL.names
        )
    )


def test_one_cluster_twice(embedded: EmbeddedEngine, tmp_path: Path) -> None:
    """Two runs of one cluster in one job would mix their rows: only these two have no result."""
    names = {"one": "c", "two": "c", "three": "d"}
    folders = [open_place(put(tmp_path / name / "run", cluster)) for name, cluster in names.items()]

    with pytest.raises(InvalidInput, match="2 of 3 clusters cannot be compared") as error:
        diff_runs(embedded, folders)

    assert str(error.value).count("one and two have the same cluster_id c") == 2
    assert [(folder / DIFFERENCES.file).exists() for folder in folders] == [False, False, True]


def test_differences_are_in_a_stable_order(decided: dict[str, list[Difference]]) -> None:
    """Rows are sorted by entity and key, whichever engine made them."""
    for differences in decided.values():
        rows = [row.id for row in differences]
        assert rows == sorted(rows)


def test_spark_reads_each_side_once(
    session: "SparkSession", spark: "SparkEngine", tmp_path: Path
) -> None:
    """Spark reads Git and the cluster once, and each state of the ledger without other rows."""
    diff_runs(spark, [open_place(put(tmp_path, "demo"))])

    plan = session.sql(text.read_sql("compare"))._jdf.queryExecution().optimizedPlan().toString()  # noqa: SLF001 - Spark prints plans only to a screen
    assert len(re.findall(r"\bRelation \[", plan)) == 5
    for rows in ("= verified", "IN (intended,altered)", "IN (cleared,intended,altered)"):
        assert rows in plan
