"""Ends that are added late to a history, and files of it that are damaged or deleted."""

import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from quota_ops.model.history.history import HISTORY
from quota_ops.sql.history import read_history
from quota_ops.store.history import history
from quota_ops.store.places import parquet
from quota_ops.store.places.run_store import RunStore
from quota_ops.store.run.names import NamedCluster
from tests.engines.five_days import at, compact, end, files, first_quota, make_store
from tests.places import on_disk


@pytest.fixture
def store(tmp_path: Path) -> RunStore:
    """Return a store with five days of two clusters."""
    return make_store(tmp_path)


@pytest.mark.parametrize("compacted", [[6], [6, 8], [6, 8, 35], [6, 8, 35, 36, 37]])
def test_a_late_end_is_counted(store: RunStore, compacted: list[int]) -> None:
    """An end that is added to a compacted day or month is counted immediately, and ever after."""
    for days in compacted:
        compact(store, datetime(2026, 11, 1, tzinfo=UTC) + timedelta(days=days))
    history.append(store, parquet.from_rows(HISTORY, end(at(2, 20), drifts=True)))
    late = read_history(store, NamedCluster(("demo",)))
    assert first_quota(late) == (1, 3, at(2), None, at(4))

    for day in range(10, 16):
        assert compact(store, datetime(2026, 12, day, tzinfo=UTC)) == ()
        assert read_history(store, NamedCluster(("demo",))) == late
    number = 1 if len(compacted) < 3 else 2
    assert [*files(store)] == [f"month=2026-11/month-{number:04d}.parquet"]


def test_deleted_days_are_not_counted(store: RunStore) -> None:
    """A day that somebody deleted is left out, also if a late end is added to it."""
    compact(store)
    shutil.rmtree(on_disk(history.day_folder(store, "2026-11-02")))
    history.append(store, parquet.from_rows(HISTORY, end(at(2, 20))))

    found = read_history(store, NamedCluster(("demo",)))

    assert (len(found.days), found.troubles) == (5, ())
    assert first_quota(found) == (1, 1, at(3), None, at(4))


def test_a_damaged_end_is_named_and_left_out(store: RunStore) -> None:
    """Every reader names it, and so does who compacts; nothing else is missing."""
    (place,) = [
        day.folder / name
        for day in history.list_days(store)
        for name in day.ends
        if day.date == "2026-11-03" and name.startswith("demo@")
    ]
    on_disk(place).write_bytes(on_disk(place).read_bytes()[:-20])

    for _ in range(2):
        found = read_history(store, NamedCluster(("demo",)))
        assert [trouble for trouble in found.troubles if str(place) in trouble] == [*found.troubles]
        assert (len(found.troubles), first_quota(found)) == (1, (1, 1, at(2), None, at(4)))
        assert str(place) in compact(store)[0]
    assert read_history(store, NamedCluster(("other",))).troubles == ()


@pytest.mark.parametrize("name", ["date=2026-11-02/day-0001", "month=2026-11/month-0001"])
def test_a_damaged_file_is_named_and_left_out(store: RunStore, name: str) -> None:
    """Readers count everything else, and nothing that it replaced is deleted."""
    for day in (6, 8) if name.startswith("date") else (6, 8, 40):
        compact(store, datetime(2026, 11 + day // 31, day % 31, tzinfo=UTC))
    place = store.history.below(f"{name}.parquet")
    on_disk(place).write_bytes(b"half")
    before = files(store)

    found = read_history(store, NamedCluster(("demo",)))
    again = compact(store, datetime(2026, 12, 20, tzinfo=UTC))

    assert [str(place) in trouble for trouble in (*found.troubles, *again)] == [True, True]
    assert len(found.days) == (4 if name.startswith("date") else 5)
    assert files(store) == before
