"""How writes are numbered into requests."""

from collections.abc import Iterable

import duckdb
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from quota_ops.model.quotas.difference import Action, Difference, Kind, group_by_batch
from quota_ops.model.quotas.rows import ActualRow, DesiredRow, LedgerRow
from quota_ops.model.quotas.tables import DIFFERENCES, OVERRIDES
from quota_ops.sql import text
from quota_ops.store.places import parquet
from tests.engines.runs import Sides

CLUSTER = "c"
KEYS = ("consumer_byte_rate", "producer_byte_rate", "request_percentage")
Write = tuple[str, str, float | None]


def differences_of(writes: Iterable[tuple[str, *Write]]) -> pa.Table:
    """Return DIFFERENCES of these writes (cluster, entity, key, value; None clears)."""
    rows = [
        Difference(
            row[0],
            row[1],
            row[2],
            Kind.PENDING,
            Action.CLEAR if after is None else Action.SET,
            before=1.0,
            after=after,
        )
        for *row, after in writes
    ]
    return parquet.from_rows(DIFFERENCES, rows)


def by_duckdb(differences: pa.Table, max_keys: int, max_bytes: int) -> pa.Table:
    """Return them with their batches by DuckDB, closed at these bounds."""
    with duckdb.connect() as db:
        db.from_arrow(differences).create_view("differences")
        db.register("overrides", parquet.from_rows(OVERRIDES, []))
        found: pa.Table = db.sql(text.batches_text(max_keys, max_bytes)).to_arrow_table()
    return parquet.conform(DIFFERENCES, found)


def numbered(writes: list[Write], *, max_keys: int, max_bytes: int) -> list[Difference]:
    """Return the batches of these writes of one cluster."""
    found = by_duckdb(differences_of((CLUSTER, *row) for row in writes), max_keys, max_bytes)
    rows = parquet.read_rows(DIFFERENCES, found)
    return [row for row in rows if row.batch is not None]


@st.composite
def some_writes(draw: st.DrawFn) -> list[Write]:
    """Generate up to thirty entities with one to three keys, names of any length."""
    names = draw(st.lists(st.text("ab", min_size=1, max_size=40), max_size=30, unique=True))
    value = st.none() | st.just(2.0)
    return [
        (f"user={name}", key, draw(value))
        for name in names
        for key in draw(st.lists(st.sampled_from(KEYS), min_size=1, max_size=3, unique=True))
    ]


def size(row: Difference) -> int:
    """Return the counted size of a record, in bytes."""
    return len(row.entity) + len(row.key) + 64


@settings(max_examples=15)
@given(writes=some_writes(), max_keys=st.integers(1, 20), max_bytes=st.integers(100, 2000))
def test_batches_are_a_partition(writes: list[Write], max_keys: int, max_bytes: int) -> None:
    """Each write is in one batch, each entity in one, and batches are numbered from 1."""
    rows = numbered(writes, max_keys=max_keys, max_bytes=max_bytes)

    assert sorted((row.entity, row.key, str(row.after)) for row in rows) == sorted(
        (entity, key, str(after)) for entity, key, after in writes
    )
    assert len({(row.entity, row.batch) for row in rows}) == len({row.entity for row in rows})
    numbers = {row.batch for row in rows}
    assert numbers == set(range(1, len(numbers) + 1))


@settings(max_examples=15)
@given(writes=some_writes(), max_keys=st.integers(1, 20), max_bytes=st.integers(100, 2000))
def test_batches_are_bounded(writes: list[Write], max_keys: int, max_bytes: int) -> None:
    """A batch exceeds a bound by no more than the entity that crossed it."""
    for rows in group_by_batch(numbered(writes, max_keys=max_keys, max_bytes=max_bytes)).values():
        largest = max(sum(size(one) for one in rows if one.entity == row.entity) for row in rows)
        assert len(rows) < max_keys + len(KEYS)
        assert sum(size(row) for row in rows) < max_bytes + largest


def test_one_bound_closes_a_batch() -> None:
    """If keys are the nearer bound, batches are not smaller because of the bound on bytes."""
    writes: list[Write] = [(f"user={number}", KEYS[0], 1.0) for number in range(10)]
    bytes_of_seven = 7 * (len("user=0") + len(KEYS[0]) + 64)

    rows = numbered(writes, max_keys=5, max_bytes=bytes_of_seven)

    assert [row.batch for row in rows] == [1] * 5 + [2] * 5


@settings(max_examples=15)
@given(writes=some_writes())
def test_what_sets_comes_first(writes: list[Write]) -> None:
    """An entity that only loses limits comes after all that gain one."""
    rows = numbered(writes, max_keys=3, max_bytes=1000)
    sets = {row.entity for row in rows if row.after is not None}
    last_set = max((row.batch or 0 for row in rows if row.entity in sets), default=0)
    first_clear = min((row.batch or 0 for row in rows if row.entity not in sets), default=last_set)

    assert last_set <= first_clear


def list_clusters() -> dict[str, Sides]:
    """Return the sides of a cluster of six thousand new entities, and one that only loses a key."""
    name = "first apply"
    desired = [
        DesiredRow(name, f"user=u{number:04}", KEYS[0], 1.0, None, None, "f", number)
        for number in range(6_000)
    ]
    gone = (name, "user=a", KEYS[0], 1.0)
    ledger = [LedgerRow(*gone, "verified", None, None, None, "r", "t")]
    return {name: Sides(desired, [ActualRow(*gone, True, None)], ledger)}


def test_the_bound_that_brokers_refuse_is_kept(decided: dict[str, list[Difference]]) -> None:
    """Both engines close a batch at 5,000 keys, half of what a broker rejects."""
    rows = [row for row in decided["first apply"] if row.batch is not None]

    assert [sum(row.batch == number for row in rows) for number in (1, 2)] == [5_000, 1_001]
    assert [row.batch for row in rows if row.after is None] == [2]
