"""Tables as Parquet bytes: rows are read back unchanged, and damage is rejected."""

import io
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quota_ops.model.errors import InvalidInput
from quota_ops.model.quotas.tables import ACTUAL, COUNT, DESIRED, FLAG, LEDGER, NUMBER, TEXT, Table
from quota_ops.store.places import parquet
from quota_ops.store.places.run_store import open_place
from quota_ops.store.places.written_by import OTHER_FORM

VALUES: dict[str, st.SearchStrategy[Any]] = {
    TEXT: st.text(st.characters(exclude_categories=["Cs"])),
    NUMBER: st.floats(allow_nan=False),
    COUNT: st.integers(-(2**31), 2**31 - 1),
    FLAG: st.booleans(),
}


def rows_of(table: Table[Any]) -> st.SearchStrategy[list[tuple[Any, ...]]]:
    """Return rows of a table with any values that its columns accept."""
    columns = (
        VALUES[column.type] | st.none() if column.nullable else VALUES[column.type]
        for column in table.columns
    )
    return st.lists(st.tuples(*columns), max_size=5)


@pytest.mark.parametrize("table", [DESIRED, ACTUAL, LEDGER], ids=lambda table: table.name)
@given(data=st.data())
def test_rows_come_back(table: Table[Any], data: st.DataObject) -> None:
    """Any rows are read back as they were written, or no rows, with the notes beside them."""
    rows = data.draw(rows_of(table))
    notes = {"policy": "null", "commits": '["é"]'}

    content = parquet.to_bytes(table, parquet.from_rows(table, rows), notes)
    read = parquet.from_bytes(table, content, "place")

    assert list(parquet.to_rows(read)) == rows
    assert parquet.notes(read) == notes
    assert read.schema.equals(parquet.arrow_schema(table, parquet.repeated_texts(table)))
    assert pq.read_schema(io.BytesIO(content)).equals(parquet.arrow_schema(table))


def test_columns_may_come_in_any_order_and_spelling() -> None:
    """Another string type or column order of an engine is the same table."""
    arrow = pa.table(
        {
            "in_scope": [True],
            "value": [1.0],
            "key": pa.array(["k"], pa.large_string()),
            "hands_off": pa.array([None], pa.string_view()),
            "entity": ["e"],
            "cluster": ["c"],
        }
    )

    found = parquet.conform(ACTUAL, arrow)

    assert list(parquet.to_rows(found)) == [("c", "e", "k", 1.0, True, None)]
    assert found.schema.equals(parquet.arrow_schema(ACTUAL))


def test_every_discrepancy_is_listed() -> None:
    """Missing columns, wrong types and unknown columns are listed at once."""
    arrow = pa.table({"cluster": ["c"], "entity": [1], "key": ["k"], "value": ["1"], "more": [1]})

    with pytest.raises(InvalidInput) as refused:
        parquet.conform(ACTUAL, arrow, "run/actual.parquet")

    assert str(refused.value) == (
        "run/actual.parquet is not a actual table: entity is int64, must be string; "
        "value is string, must be double; in_scope is missing, must be boolean; "
        "hands_off is missing, must be string; more is not one of its columns\n"
        f"  {OTHER_FORM}"
    )


def test_every_column_with_a_hole_is_listed() -> None:
    """A null is accepted only where the table allows it."""
    rows = parquet.from_rows(ACTUAL, [("c", None, "k", None, True, None)])

    with pytest.raises(InvalidInput) as refused:
        parquet.to_bytes(ACTUAL, rows)

    assert str(refused.value) == "actual has empty values in entity, value"


@pytest.mark.parametrize("content", [b"", b"PAR1", b"PAR1" + bytes(100) + b"PAR1", b"PAR1 no PAR1"])
def test_what_is_no_parquet_is_refused(content: bytes, tmp_path: Path) -> None:
    """Damaged bytes are an error with their place, whether all columns are read or some."""
    place = tmp_path / "actual.parquet"
    place.write_bytes(content)

    with pytest.raises(InvalidInput, match=r"^place cannot be read as a Parquet file: "):
        parquet.from_bytes(ACTUAL, content, "place")
    with pytest.raises(InvalidInput, match=f"^{place} cannot be read as a Parquet file: "):
        parquet.columns(open_place(place))


def test_columns_without_rows(tmp_path: Path) -> None:
    """Column names and types are read alone; a missing file is Python's error."""
    place = tmp_path / "a.parquet"
    pq.write_table(pa.table({"a": ["x", "y", "x"], "b": [1.0, 2.0, 3.0]}), place)

    assert parquet.columns(open_place(place)) == {"a": "string", "b": "double"}
    with pytest.raises(FileNotFoundError):
        parquet.columns(open_place(tmp_path / "missing"))
