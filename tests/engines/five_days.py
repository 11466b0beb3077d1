"""Five days of two clusters' history, and what a reader finds in it."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from quota_ops.model.history.history import HISTORY, HistoryRow
from quota_ops.sql.history import History
from quota_ops.store.history import history
from quota_ops.store.places import parquet
from quota_ops.store.places.run_store import RunStore, open_place

NOTHING: dict[str, Any] = dict.fromkeys(HistoryRow._fields)
NOW = datetime(2026, 11, 6, 12, tzinfo=UTC)


def at(day: int, hour: int = 10) -> str:
    """Return a time in November 2026."""
    return f"2026-11-{day:02}T{hour:02}:00:00Z"


def end(ended: str, *, drifts: bool = False, cluster: str = "demo") -> list[HistoryRow]:
    """Return the rows of a look that found the cluster in sync, or one drifted quota."""
    run = {"cluster": cluster, "run": f"look {ended}", "started": ended, "ended": ended}
    look = NOTHING | run | {"revision": 1, "mode": "look", "status": "In sync", "declared": 3}
    quota = {"entity": "user=a", "key": "k", "kind": "drifted", "state": "drifted", "owner": "team"}
    rows = [HistoryRow(**look | {"in_sync": 3 - drifts, "drifted": int(drifts)})]
    return [*rows, *([HistoryRow(**look | {"declared": None} | quota)] if drifts else [])]


def make_store(folder: Path) -> RunStore:
    """Return a store with five days of two clusters; `demo` drifts on the second and third."""
    found = RunStore(open_place(folder))
    for day in range(1, 6):
        history.append(found, parquet.from_rows(HISTORY, end(at(day), drifts=day in {2, 3})))
        history.append(found, parquet.from_rows(HISTORY, end(at(day, 11), cluster="other")))
    return found


def compact(store: RunStore, now: datetime = NOW) -> tuple[str, ...]:
    """Compact the past days and months."""
    return history.compact(history.list_days(store), now)


def files(store: RunStore) -> dict[str, bytes]:
    """Return the bytes of each file of the history."""
    walked = store.history.walk()
    return {
        leaf.path: store.history.below(leaf.path).read() for leaf in walked if not leaf.is_folder
    }


def first_quota(found: History) -> tuple[Any, ...]:
    """Return how often the first quota drifted, in how many looks, when first, and since when."""
    quota = found.quotas[0]
    return quota.drifts, quota.times_seen, quota.first_seen, quota.drifted_since, quota.repaired
