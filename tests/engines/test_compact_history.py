"""The history in a run store: compacted by day and month, and read the same all along."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from quota_ops.model.history.history import HISTORY, HistoryRow, QuotaDrift
from quota_ops.sql.history import read_events, read_fleet_history, read_history
from quota_ops.store.history import history
from quota_ops.store.places import parquet
from quota_ops.store.places.run_store import RunStore, open_place
from quota_ops.store.run.names import NamedCluster
from tests.engines.five_days import NOTHING, NOW, at, compact, files, first_quota, make_store


@pytest.fixture
def store(tmp_path: Path) -> RunStore:
    """Return a store with five days of two clusters."""
    return make_store(tmp_path)


def test_compacted_files_say_the_same(store: RunStore) -> None:
    """A reader gets the same before and after each step; at last a month is one file."""
    before = read_history(store, NamedCluster(("demo",)))
    events = read_events(store, NamedCluster(("demo",)), "2026-11-03")
    assert first_quota(before) == (1, 2, at(2), None, at(4))
    assert [(day.date, day.drifted, day.repaired) for day in before.days] == [
        (f"2026-11-0{day}", int(day in {2, 3}), int(day == 4)) for day in range(1, 6)
    ]

    found, stored = [], files(store)
    for ago in range(30):
        assert compact(store, NOW + timedelta(days=ago)) == ()
        found.append({path.partition("=")[0] for path in files(store)})
        if files(store) == stored:
            continue  # the same bytes read the same
        stored = files(store)
        assert read_history(store, NamedCluster(("demo",))) == before
        found_events = read_events(store, NamedCluster(("demo",)), "2026-11-03")
        assert found_events.drifts == events.drifts
        assert sorted(found_events.rows, key=repr) == sorted(events.rows, key=repr)

    assert [*files(store)] == ["month=2026-11/month-0001.parquet"]
    assert ({"date"}, {"date", "month"}) == (found[10], found[25])


def test_nothing_is_written_twice(store: RunStore) -> None:
    """Without a new end, no byte of the history changes."""
    compact(store)
    before = files(store)

    assert compact(store) == ()
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
        parquet.from_rows(
            HISTORY,
            [
                HistoryRow(**NOTHING | run | {"declared": 3}),
                *(HistoryRow(**wrote | {"entity": f"user={name}", "key": "k"}) for name in "abc"),
            ],
        ),
    )

    def read(*entities: str) -> list[tuple[str, int, str | None]]:
        quotas = read_history(store, NamedCluster(("demo",)), entities).quotas
        return [(quota.entity, quota.drifts, quota.set_run) for quota in quotas]

    for _ in range(2):
        assert read() == [("user=a", 1, "apply")]
        assert read("user=c", "user=d") == [("user=a", 1, "apply"), ("user=c", 0, "apply")]
        compact(store)


def test_the_first_run_of_a_day_compacts(store: RunStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """It leaves the rest of a long history to the next day; later runs of the day do nothing."""
    monkeypatch.setattr(history, "MOST_ENDS", 3)
    before = read_history(store, NamedCluster(("demo",)))

    history.compact_daily(store, NOW)

    compacted = {path for path in files(store) if "/day-" in path}
    assert compacted == {f"date=2026-11-0{day}/day-0001.parquet" for day in (1, 2)}
    kept = files(store)
    history.compact_daily(store, NOW)
    assert files(store) == kept
    for day in (7, 8, 9, 10):
        history.compact_daily(store, datetime(2026, 11, day, tzinfo=UTC))
    assert read_history(store, NamedCluster(("demo",))) == before
    assert [path for path in files(store) if "@" in path] == []
    assert [path for path in files(store) if "/" not in path] == ["compacted-2026-11-09"]


def test_two_runs_at_once_compact_once(store: RunStore) -> None:
    """Of several first runs of a day, one compacts."""
    with ThreadPoolExecutor(4) as runs:
        found = list(runs.map(lambda _: history.compact_daily(store, NOW), range(4)))

    assert found == [()] * 4
    assert len([path for path in files(store) if "/day-" in path]) == 5


def test_events_of_one_quota(store: RunStore) -> None:
    """The events of an entity within some days are its drifts and the runs that wrote it."""
    (drift,) = read_events(store, NamedCluster(("demo",)), "2026-11-03", "user=a").drifts

    assert (drift.since, drift.repaired, drift.times_seen) == (at(3), at(4), 1)
    assert read_events(store, NamedCluster(("demo",)), "2026-11-01", "user=b").drifts == ()


@pytest.mark.parametrize("ago", [0, 2, 40])
def test_all_clusters_at_once(store: RunStore, ago: int) -> None:
    """The overview counts the runs that found a quota drifted, from a day on, by what is compacted.

    It does not read each end of a day that is not over.
    """
    compact(store)
    if ago:
        compact(store, NOW + timedelta(days=ago))

    found = read_fleet_history(store, "2026-11-03")

    assert [(day.date, day.cluster, day.in_sync) for day in found.days] == [
        (f"2026-11-0{day}", cluster, 3 - (day == 3 and cluster == "demo"))
        for day in (3, 4, 5)
        for cluster in ("demo", "other")
    ]
    assert found.quotas == (QuotaDrift("demo", "user=a", "k", "team", 1, at(3), at(3)),)
    assert read_fleet_history(make_store_of_today(store), "2026-11-03") == found


def make_store_of_today(store: RunStore) -> RunStore:
    """Add an end that is not compacted."""
    end = NOTHING | {"cluster": "new", "run": "now", "revision": 1}
    history.append(
        store,
        parquet.from_rows(
            HISTORY,
            [HistoryRow(**end | {"started": at(6), "ended": at(6), "mode": "look", "status": ""})],
        ),
    )
    return store


def test_a_copied_history_says_the_same(store: RunStore, tmp_path_factory: Any) -> None:
    """A store that was copied file by file has the same history."""
    compact(store)
    copy = tmp_path_factory.mktemp("copy")
    for path, content in files(store).items():
        (copy / "history" / path).parent.mkdir(parents=True, exist_ok=True)
        (copy / "history" / path).write_bytes(content)

    copied = RunStore(open_place(copy))
    assert read_history(copied, NamedCluster(("demo",))) == read_history(
        store, NamedCluster(("demo",))
    )
    assert compact(copied) == ()
