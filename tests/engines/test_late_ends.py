"""Ends that are added late to a history, and files of it that are damaged or deleted."""

import shutil
from datetime import UTC, datetime
from pathlib import Path

import pytest

from quota_ops.sql.history import read_history
from quota_ops.store.history import history
from quota_ops.store.places.run_store import RunStore
from tests.engines.five_days import at, end, first_quota, make_store, summarize
from tests.places import on_disk


@pytest.fixture
def store(tmp_path: Path) -> RunStore:
    """Return a store with five days of two clusters."""
    return make_store(tmp_path)


def test_a_late_end_is_counted(store: RunStore) -> None:
    """An end that is added to a summarized day is counted at once, and in the next summary."""
    summarize(store)
    history.append(store, end(at(2, 20), drifts=True))
    late = read_history(store, "demo")
    assert first_quota(late) == (1, 3, at(2), None, at(4))

    assert summarize(store) == ("2026-11-05", ())
    assert read_history(store, "demo") == late
    assert summarize(store) == (None, ())


def test_a_late_end_is_counted_after_a_deleted_day(store: RunStore) -> None:
    """An earlier summary is continued if it has the deleted days but not that of the late end."""
    summarize(store, datetime(2026, 11, 4, tzinfo=UTC))
    summarize(store)
    shutil.rmtree(on_disk(history.day_folder(store, "2026-11-01")))
    history.append(store, end(at(4, 20), drifts=True))

    late = read_history(store, "demo")
    assert (len(late.days), late.troubles) == (5, ())
    assert first_quota(late) == (2, 3, at(2), None, at(5))
    assert summarize(store) == ("2026-11-05", ())
    assert read_history(store, "demo") == late


def test_a_late_end_of_a_deleted_day_is_named(store: RunStore) -> None:
    """It lowers no count, and is named until its folder is deleted too."""
    summarize(store)
    before = read_history(store, "demo")
    folder = history.day_folder(store, "2026-11-01")
    shutil.rmtree(on_disk(folder))
    history.append(store, end(at(1, 20), drifts=True))

    for _ in range(2):
        found = read_history(store, "demo")
        assert found._replace(troubles=()) == before
        (trouble,) = found.troubles
        assert trouble.startswith(f"{folder}: an end was added after days were deleted")
        assert summarize(store) == (None, (trouble,))
    shutil.rmtree(on_disk(folder))
    assert read_history(store, "demo") == before


def test_a_damaged_end_is_named_and_left_out(store: RunStore) -> None:
    """Every reader and every summary names it; nothing else is missing."""
    (place,) = [
        day.folder / name
        for day in history.list_days(store)
        for name in day.ends
        if day.date == "2026-11-03" and name.startswith("demo@")
    ]
    on_disk(place).write_bytes(on_disk(place).read_bytes()[:-20])

    for _ in range(2):
        found = read_history(store, "demo")
        assert [trouble for trouble in found.troubles if str(place) in trouble] == [*found.troubles]
        assert (len(found.troubles), first_quota(found)) == (1, (1, 1, at(2), None, at(4)))
        assert str(place) in summarize(store)[1][0]
    assert read_history(store, "other").troubles == ()
