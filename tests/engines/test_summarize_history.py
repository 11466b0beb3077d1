"""The summary of a history in a run store: incremental, late ends included, damage named."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from quota_ops.model.history.history import HistoryRow
from quota_ops.sql import daily_summary, history_engines
from quota_ops.sql.daily_summary import summarize_daily
from quota_ops.sql.embedded import EmbeddedEngine
from quota_ops.sql.history import read_events, read_history, summarize_history
from quota_ops.sql.history_engines import EngineBySize
from quota_ops.sql.job import EngineFailed
from quota_ops.store.history import history
from quota_ops.store.history.summaries import read_summaries
from quota_ops.store.places.place import Place
from quota_ops.store.places.run_store import RunStore, open_place
from tests.engines.five_days import NOTHING, NOW, at, files, first_quota, make_store, summarize
from tests.engines.runs import SPARK_IN_MATRIX
from tests.places import on_disk

if TYPE_CHECKING:
    from tests.engines.runs import AnyEngine


@pytest.fixture
def store(tmp_path: Path) -> RunStore:
    """Return a store with five days of two clusters."""
    return make_store(tmp_path)


def test_the_summary_and_the_files_say_the_same(store: RunStore) -> None:
    """A reader gets the same history before and after each summary, and days are compacted."""
    before = read_history(store, "demo")
    assert first_quota(before) == (1, 2, at(2), None, at(4))
    assert [(one.date, one.drifted, one.repaired) for one in before.days] == [
        (f"2026-11-0{day}", int(day in {2, 3}), int(day == 4)) for day in range(1, 6)
    ]

    assert summarize(store, datetime(2026, 11, 3, tzinfo=UTC)) == ("2026-11-02", ())
    assert read_history(store, "demo") == before
    assert summarize(store) == ("2026-11-05", ())
    assert read_history(store, "demo") == before
    assert summarize(store, datetime(2026, 11, 7, tzinfo=UTC)) == (None, ())
    assert read_history(store, "demo") == before
    assert {path for path in files(store) if path.startswith("date=")} == {
        f"date=2026-11-0{day}/day-0001.parquet" for day in range(1, 6)
    }


def test_a_second_summary_of_the_same_writes_nothing(store: RunStore) -> None:
    """Without a new end, no byte of the history changes."""
    summarize(store)
    before = files(store)

    assert summarize(store) == (None, ())
    assert files(store) == before


def test_quotas_without_drift_are_read_on_demand(store: RunStore) -> None:
    """A reader gets each quota that drifted, with its last write, and others if it names them."""
    run: dict[str, Any] = {
        "cluster": "demo",
        "run": "apply",
        "started": at(5, 12),
        "ended": at(5, 12),
    }
    run |= {"revision": 1, "mode": "apply", "status": "In sync"}
    wrote = NOTHING | run | {"outcome": "accepted"}
    history.append(
        store,
        [
            HistoryRow(**NOTHING | run | {"declared": 3}),
            *(HistoryRow(**wrote | {"entity": f"user={name}", "key": "k"}) for name in "abc"),
        ],
    )

    def read(*entities: str) -> list[tuple[str, int, str | None]]:
        quotas = read_history(store, "demo", entities).quotas
        return [(quota.entity, quota.drifts, quota.set_run) for quota in quotas]

    for _ in range(2):
        assert read() == [("user=a", 1, "apply")]
        assert read("user=c", "user=d") == [("user=a", 1, "apply"), ("user=c", 0, "apply")]
        assert summarize(store) in [("2026-11-05", ()), (None, ())]


@SPARK_IN_MATRIX
def test_a_damaged_day_is_named_and_left_out(engine: "AnyEngine", store: RunStore) -> None:
    """Either engine counts all other days, and readers learn of it."""
    history.compact(history.list_days(store), NOW)
    history.compact(history.list_days(store), datetime(2026, 11, 8, tzinfo=UTC))
    place = store.history / "date=2026-11-02" / "day-0001.parquet"
    on_disk(place).write_bytes(b"half")

    until, troubles = summarize_history(engine, store, NOW)

    assert (until, [str(place) in trouble for trouble in troubles]) == ("2026-11-05", [True])
    found = read_history(store, "demo")
    assert [str(place) in trouble for trouble in found.troubles] == [True]
    assert first_quota(found) == (1, 1, at(3), None, at(4))


def test_spark_starts_only_for_a_large_history(
    store: RunStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A small history is summarized without Spark; a large one by it."""
    before = read_history(store, "demo")
    asked: list[int] = []
    monkeypatch.setattr(history_engines, "LARGE_BYTES", 0)

    def open_spark() -> EmbeddedEngine:
        asked.append(1)
        return EmbeddedEngine()

    by_size = EngineBySize(open_spark)
    summarize_history(by_size, store, datetime(2026, 11, 3, tzinfo=UTC))
    assert asked == [1]

    monkeypatch.undo()
    summarize_history(by_size, store, NOW)

    assert (asked, read_history(store, "demo")) == ([1], before)


class Interrupted(EmbeddedEngine):
    """An engine that is interrupted after it has written its tables."""

    def fold_days(self, days: Sequence[Place], before: Any, to: Place) -> dict[str, list[Place]]:
        """Write the tables, and raise."""
        super().fold_days(days, before, to)
        raise EngineFailed("interrupted")


def test_an_interrupted_summary_leaves_the_old_one(store: RunStore) -> None:
    """Until a summary is complete, readers use the one before, and nothing of it stays."""
    summarize(store, datetime(2026, 11, 3, tzinfo=UTC))
    before = read_history(store, "demo")
    history.compact(history.list_days(store), NOW)
    kept = files(store)

    with pytest.raises(EngineFailed):
        summarize_history(Interrupted(), store, NOW)

    assert (read_history(store, "demo"), files(store)) == (before, kept)


def test_the_first_run_of_a_day_summarizes(
    store: RunStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It leaves the rest of a long history to the next day; later runs of the day do nothing."""
    monkeypatch.setattr(daily_summary, "MOST_ENDS", 3)
    before = read_history(store, "demo")

    summarize_daily(store, NOW)

    assert next(read_summaries(store)).until == "2026-11-02"
    kept = files(store)
    summarize_daily(store, NOW)
    assert files(store) == kept
    for day in (7, 8, 9):
        summarize_daily(store, datetime(2026, 11, day, tzinfo=UTC))
    assert next(read_summaries(store)).until == "2026-11-05"
    assert read_history(store, "demo") == before
    names = {path.rpartition("/")[2] for path in files(store)}
    assert {name for name in names if name.startswith("begun-")} == {"begun-2026-11-09"}
    assert not [name for name in names if "@" in name]


def test_two_runs_at_once_summarize_once(store: RunStore) -> None:
    """Of several first runs of a day, one summarizes."""
    with ThreadPoolExecutor(4) as runs:
        list(runs.map(lambda _: summarize_daily(store, NOW), range(4)))

    assert len(list(read_summaries(store))) == 1


def test_events_of_one_quota(store: RunStore) -> None:
    """The events of an entity within some days are its drifts and the runs that wrote it."""
    (drift,) = read_events(store, "demo", "2026-11-03", "user=a").drifts

    assert (drift.since, drift.repaired, drift.times_seen) == (at(3), at(4), 1)
    assert read_events(store, "demo", "2026-11-01", "user=b").drifts == ()


def test_a_copied_history_says_the_same(store: RunStore, tmp_path_factory: Any) -> None:
    """A store that was copied file by file has the same history."""
    summarize(store)
    copy = tmp_path_factory.mktemp("copy")
    for path, content in files(store).items():
        (copy / "history" / path).parent.mkdir(parents=True, exist_ok=True)
        (copy / "history" / path).write_bytes(content)

    copied = RunStore(open_place(copy))
    assert read_history(copied, "demo") == read_history(store, "demo")
    assert summarize(copied) == (None, ())
