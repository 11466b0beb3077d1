"""Digests of some days, and the use that is read back from them."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa

from quota_ops.model.usage.digest import UseRow
from quota_ops.sql.embedded_usage import SpanRow, SummedDays, open_digests, pack_series
from quota_ops.store.history.digests import find_digests, write_digest
from quota_ops.store.places.run_store import RunStore, open_place


def merge(days: Mapping[str, pa.Table], least: float | None = None) -> list[UseRow]:
    """Return the use of the days together, whose buckets become digests in a run store."""
    with TemporaryDirectory() as folder:
        store = RunStore(open_place(Path(folder)))
        for day, buckets in days.items():
            write_digest(store, "id", day, pack_series(buckets))
        return read_use(store, "id", [*days], least)


def read_use(
    store: RunStore, cluster_id: str, days: Sequence[str], least: float | None = None
) -> list[UseRow]:
    """Return the use of recorded days together; `least` is the rate that counts as the limit."""
    with open_days(store, cluster_id, days) as recorded:
        spans = [
            SpanRow(*series, number, least, least)
            for number, series in enumerate(recorded.list_series())
        ]
        return sorted(recorded.measure(spans), key=repr)


def open_days(
    store: RunStore, cluster_id: str, days: Sequence[str]
) -> AbstractContextManager[SummedDays]:
    """Open the digests of some days as one part."""
    digests = find_digests(store, cluster_id, days)
    return open_digests([*digests.values()], dict.fromkeys(digests, 0))
