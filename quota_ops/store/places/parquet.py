"""Tables as Parquet bytes; columns are checked against the model on reading and writing."""

import io
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib.abc import MetaPathFinder
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from quota_ops.model.errors import InvalidInput
from quota_ops.model.quotas.tables import COUNT, COUNTS, FLAG, NUMBER, TEXT, Row, Table
from quota_ops.store.places import written_by
from quota_ops.store.places.place import Place

# Arrow's own pool does not return freed memory: 45 MB in a plan of 10,000 entities.
pa.set_memory_pool(pa.system_memory_pool())


class _WithoutPandas(MetaPathFinder):
    """Does not find pandas, which Spark Connect needs and nothing here."""

    def find_spec(self, fullname: str, *_: Any) -> None:
        """Raise ModuleNotFoundError for pandas; find nothing else."""
        if fullname == "pandas":
            raise ModuleNotFoundError(name=fullname)


# pyarrow imports pandas at its first array, in 0.4 s of CPU time, only to recognize its objects. A
# program that uses pandas itself still can: pyarrow looks again when pandas is needed.
sys.meta_path.insert(0, without_pandas := _WithoutPandas())
pa.array([])
sys.meta_path.remove(without_pandas)

ARROW_TYPES = {
    TEXT: pa.string(),
    NUMBER: pa.float64(),
    COUNT: pa.int32(),
    FLAG: pa.bool_(),
    COUNTS: pa.list_(pa.int32()),
}
REPEATED = pa.dictionary(pa.int32(), pa.string())
"""The type of a column of texts that many rows share, such as owners: each text is kept once."""


def arrow_schema(table: Table[Any], repeated: Collection[str] = ()) -> pa.Schema:
    """Return the table's columns as an Arrow schema, those named as REPEATED."""
    return pa.schema(
        [
            pa.field(
                column.name,
                REPEATED if column.name in repeated else ARROW_TYPES[column.type],
                nullable=column.nullable,
            )
            for column in table.columns
        ]
    )


def repeated_texts(table: Table[Any]) -> list[str]:
    """Return the names of the columns whose texts many rows share: all texts but entities."""
    return [
        column.name for column in table.columns if column.type == TEXT and column.name != "entity"
    ]


def from_rows(table: Table[Any], rows: Sequence[Sequence[Any]]) -> pa.Table:
    """Return rows, whose fields are the table's columns in order, as an Arrow table."""
    return from_columns(table, zip(*rows, strict=True) if rows else [()] * len(table.columns))


def from_columns(table: Table[Any], columns: Iterable[Sequence[Any]]) -> pa.Table:
    """Return the values of each column, in the table's order, as an Arrow table."""
    schema = arrow_schema(table, repeated_texts(table))
    pairs = zip(columns, schema.types, strict=True)
    return pa.Table.from_arrays([pa.array(*pair) for pair in pairs], schema=schema)


def to_rows(arrow: pa.Table, *names: str) -> Iterable[tuple[Any, ...]]:
    """Return the rows of an Arrow table as tuples of the columns with these names, or of all."""
    columns = map(arrow.column, names) if names else arrow.columns
    return zip(*map(to_values, columns), strict=True)


def to_values(column: pa.ChunkedArray) -> list[Any]:
    """Return the values of a column; texts that rows share are one object."""
    if column.type != REPEATED:
        return list(column.to_pylist())
    values: list[Any] = []
    for chunk in column.chunks:
        texts = chunk.dictionary.to_pylist()
        values += [None if index is None else texts[index] for index in chunk.indices.to_pylist()]
    return values


def read_rows(table: Table[Row], arrow: pa.Table) -> Iterator[Row]:
    """Return the rows of an Arrow table that has the columns of `table`."""
    return map(table.row._make, to_rows(arrow))


def to_bytes(
    table: Table[Any],
    arrow: pa.Table,
    notes: Mapping[str, str] | None = None,
    *,
    group_rows: int | None = None,
    **options: Any,
) -> bytes:
    """Return a table as the bytes of a Parquet file, with notes in its key-value metadata.

    `group_rows` is how many rows `read_part` reads at a time, at least. The options are those of
    pyarrow's ParquetWriter.

    Raises InvalidInput if its columns are not the model's.
    """
    sink, rows = io.BytesIO(), conform(table, arrow)
    # A stored schema would have the type REPEATED, which earlier versions of quota-ops cannot read.
    with pq.ParquetWriter(sink, rows.schema, store_schema=False, **options) as writer:
        writer.write_table(rows, row_group_size=group_rows)
        writer.add_key_value_metadata(written_by.stamp(notes or {}))
    return sink.getvalue()


def from_bytes(table: Table[Any], content: bytes, place: str) -> pa.Table:
    """Return the table in the bytes of a Parquet file.

    Raises InvalidInput, with the place, if it is not a Parquet file or not this table; NewerFile if
    a newer version wrote it.
    """
    try:
        return _parse(table, content, place)
    except InvalidInput as error:
        if newer := find_newer_writer(content):
            raise written_by.explain_newer(place, newer, error.message) from error
        raise


def read_part(table: Table[Any], place: Place, column: str, wanted: Collection[str]) -> pa.Table:
    """Return the rows with these texts in a column; other groups of rows are not read.

    Raises like `from_bytes`, and OSError if the file cannot be opened.
    """
    with place.open() as opened, _reading(place):
        try:
            metadata = pq.read_metadata(opened)
            texts = [*{*repeated_texts(table)}.intersection(metadata.schema.names)]
            file = pq.ParquetFile(opened, metadata=metadata, read_dictionary=texts)
            arrow = file.read_row_groups(_find_groups(metadata, column, wanted), use_threads=False)
            rows = conform(table, arrow, str(place)).replace_schema_metadata(metadata.metadata)
        except InvalidInput as error:
            if newer := _find_newer(metadata):
                raise written_by.explain_newer(place, newer, error.message) from error
            raise
    return rows.filter(pa.array([text in wanted for text in to_values(rows[column])], pa.bool_()))


def _find_groups(metadata: pq.FileMetaData, column: str, wanted: Collection[str]) -> list[int]:
    """Return the numbers of the groups of rows that may have one of these texts in a column."""
    if column not in metadata.schema.names:
        return [*range(metadata.num_row_groups)]
    at = metadata.schema.names.index(column)
    groups = range(metadata.num_row_groups)
    bounds = [metadata.row_group(group).column(at).statistics for group in groups]
    return [
        group
        for group, bound in enumerate(bounds)
        if not (bound and bound.has_min_max)
        or any(bound.min <= text <= bound.max for text in wanted)
    ]


@contextmanager
def _reading(place: Place | str) -> Iterator[None]:
    """Raise InvalidInput for a file that the store does not return, or that is not Parquet.

    A missing file stays a FileNotFoundError.
    """
    try:
        yield
    except FileNotFoundError:
        raise
    except (pa.ArrowInvalid, OSError) as error:
        why = error.strerror if isinstance(error, OSError) else None
        how = f"cannot be read: {why}" if why else f"cannot be read as a Parquet file: {error}"
        raise InvalidInput(f"{place} {how}") from error


def find_newer_writer(content: bytes) -> str | None:
    """Return the version that wrote a Parquet file, if it is newer than this one."""
    with suppress(pa.ArrowInvalid, OSError):
        return _find_newer(pq.read_metadata(pa.BufferReader(content)))
    return None


def _find_newer(metadata: pq.FileMetaData) -> str | None:
    found = metadata.metadata or {}
    return written_by.find_newer({name.decode(): value.decode() for name, value in found.items()})


def _parse(table: Table[Any], content: bytes, place: str) -> pa.Table:
    with _reading(place):
        reader = pa.BufferReader(content)
        metadata = pq.read_metadata(reader)
        texts = [*{*repeated_texts(table)}.intersection(metadata.schema.names)]
        file = pq.ParquetFile(reader, metadata=metadata, read_dictionary=texts, pre_buffer=False)
        arrow = file.read(use_threads=False)
    return conform(table, arrow, place).replace_schema_metadata(arrow.schema.metadata)


def notes(arrow: pa.Table) -> dict[str, str]:
    """Return the notes that `to_bytes` wrote to the metadata, without its version."""
    metadata = arrow.schema.metadata or {}
    found = {name.decode(): value.decode() for name, value in metadata.items()}
    found.pop(written_by.WRITTEN_BY, None)
    return found


def conform(table: Table[Any], arrow: pa.Table, place: str = "") -> pa.Table:
    """Return the same rows with the model's column types; texts may be REPEATED.

    Raises InvalidInput, with every discrepancy, if they are not the table's columns.
    """
    check_columns(table, {field.name: str(field.type) for field in arrow.schema}, place)
    arrow = arrow.select(table.names)
    empty = [
        column.name
        for column in table.columns
        if not column.nullable and arrow[column.name].null_count
    ]
    if empty:
        raise InvalidInput(f"{place or table.name} has empty values in {', '.join(empty)}")
    schema = arrow_schema(table, [field.name for field in arrow.schema if field.type == REPEATED])
    if arrow.schema.types == schema.types:  # importing the cast takes longer than a small diff
        return pa.Table.from_arrays(arrow.columns, schema=schema)
    return arrow.cast(schema)


_SPELLINGS = {
    TEXT: {"string", "large_string", "string_view", str(REPEATED)},
    NUMBER: {"double"},
    COUNT: {"int32"},
    FLAG: {"bool"},
    COUNTS: {f"list<{name}: int32>" for name in ("element", "item", "l", "child")},
}


def check_columns(table: Table[Any], found: Mapping[str, str], place: str) -> None:
    """Compare column names and Arrow type names to the table.

    Raises OtherForm, which lists the differences.
    """
    wrong = [
        f"{column.name} is {found.get(column.name, 'missing')}, must be {column.type}"
        for column in table.columns
        if found.get(column.name) not in _SPELLINGS[column.type]
    ]
    wrong += [f"{name} is not one of its columns" for name in found if name not in table.names]
    if wrong:
        raise written_by.OtherForm(
            f"{place or 'the table'} is not a {table.name} table: {'; '.join(wrong)}",
            written_by.OTHER_FORM if place else None,
        )


def columns(place: Place) -> dict[str, str]:
    """Return the column names and Arrow type names of a Parquet file, without reading its rows.

    Raises FileNotFoundError, or InvalidInput if it is not a Parquet file.
    """
    with _reading(place), place.open() as file:
        schema = pq.read_schema(file)
    return {field.name: str(field.type) for field in schema}


def read_clusters(table: Table[Any], place: Place) -> set[str | None]:
    """Return the cluster ids in a table's Parquet file, after checking its columns.

    Raises FileNotFoundError, or InvalidInput as `from_bytes` does.
    """
    with _reading(place), place.open() as opened:
        file = pq.ParquetFile(opened, read_dictionary=["cluster"], pre_buffer=False)
        types = {field.name: str(field.type) for field in file.schema_arrow}
        check_columns(table, types, str(place))
        chunks = file.read(columns=["cluster"], use_threads=False)["cluster"].chunks
    return {text for chunk in chunks for text in chunk.dictionary.to_pylist()}
