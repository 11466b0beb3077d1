"""The history in a bucket: compacted, and read as on a disk."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from quota_ops.model.history.history import HISTORY
from quota_ops.sql.history import read_history
from quota_ops.store.history import history
from quota_ops.store.places import parquet
from quota_ops.store.places.run_store import RunStore, open_place
from quota_ops.store.run.names import NamedCluster
from tests.engines.five_days import at, end


@pytest.mark.each_bucket
def test_a_history_in_a_bucket(address: str, tmp_path: Path) -> None:
    """Days are compacted, then months; a late end counts; it reads as on a disk."""
    stores = [RunStore(open_place(place)) for place in (address, tmp_path)]
    found = []
    for store in stores:
        for day in range(1, 4):
            history.append(store, parquet.from_rows(HISTORY, end(at(day), drifts=day == 2)))
        history.compact_daily(store, datetime(2026, 11, 4, tzinfo=UTC))
        history.append(store, parquet.from_rows(HISTORY, end(at(3, 20), drifts=True)))
        history.append(store, parquet.from_rows(HISTORY, end(at(4))))
        late = read_history(store, NamedCluster(("demo",)))
        history.compact_daily(store, datetime(2026, 11, 5, tzinfo=UTC))
        assert read_history(store, NamedCluster(("demo",))) == late
        for day in (6, 7, 33, 34, 35):
            history.compact_daily(store, datetime(2026, 11, 1, tzinfo=UTC) + timedelta(days=day))
            assert read_history(store, NamedCluster(("demo",))) == late
        assert {day.date for day in history.list_days(store)} == {"2026-11"}
        found.append(late)

    assert found[0] == found[1]
    assert [(quota.drifts, quota.times_seen, quota.repaired) for quota in found[0].quotas] == [
        (2, 2, at(4))
    ]
