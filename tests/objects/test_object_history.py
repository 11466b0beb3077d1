"""The history in a bucket: compacted, summarized, and read as on a disk."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from quota_ops.sql.daily_summary import summarize_daily
from quota_ops.sql.history import read_history
from quota_ops.store.history import history
from quota_ops.store.history.summaries import read_summaries
from quota_ops.store.places.run_store import RunStore, open_place
from tests.engines.five_days import at, end


@pytest.mark.each_bucket
def test_a_history_in_a_bucket(address: str, tmp_path: Path) -> None:
    """Days are compacted, summarized and continued; a late end counts; it reads as on a disk."""
    stores = [RunStore(open_place(place)) for place in (address, tmp_path)]
    found = []
    for store in stores:
        for day in range(1, 4):
            history.append(store, end(at(day), drifts=day == 2))
        summarize_daily(store, datetime(2026, 11, 4, tzinfo=UTC))
        history.append(store, end(at(3, 20), drifts=True))
        history.append(store, end(at(4)))
        late = read_history(store, "demo")
        summarize_daily(store, datetime(2026, 11, 5, tzinfo=UTC))
        assert read_history(store, "demo") == late
        found.append(late)
        assert [summary.until for summary in read_summaries(store)] == ["2026-11-04", "2026-11-03"]
        ends = [name for one in history.list_days(store) for name in one.ends]
        assert len(ends) == 3  # those of earlier days are in the compacted files

    assert found[0] == found[1]
    assert [(quota.drifts, quota.times_seen, quota.repaired) for quota in found[0].quotas] == [
        (2, 2, at(4))
    ]
