"""Read the use of past days from Prometheus into digests, for the days that have none."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pyarrow.compute as pc

from quota_ops.model.quotas.quota import MEASURED_KEYS
from quota_ops.model.usage.digest import DELAYED, DIGEST, DigestedDay
from quota_ops.model.usage.series import Time
from quota_ops.store.history.digests import find_missing, list_past_days, write_digest
from quota_ops.store.places import parquet
from quota_ops.store.places.run_store import RunStore
from quota_ops.usage.overview import read_throttled
from quota_ops.usage.prometheus import open_prometheus
from quota_ops.usage.samples import join_samples, list_brokers, read_parts
from quota_ops.usage.source import UsageSource

_MOST_ROWS = 500_000
"""Rows of the digests of parts that are kept before they are joined: 20 MB."""


def record_missing_days(
    store: RunStore, cluster_id: str, source: UsageSource, days: int
) -> list[DigestedDay]:
    """Write the missing digests of the last complete days (UTC). Raises like `digest_days`."""
    past = list_past_days(datetime.now(UTC), days)
    return digest_days(store, cluster_id, source, find_missing(store, cluster_id, past))


def digest_days(
    store: RunStore, cluster_id: str, source: UsageSource, days: Sequence[str]
) -> list[DigestedDay]:
    """Write the digest of each day; a day that cannot be read gets none, and may be read later.

    Raises UseUnknown if Prometheus does not respond. Days that were written before stay.
    """
    return [_digest_day(store, cluster_id, source, day) for day in days]


def _digest_day(store: RunStore, cluster_id: str, source: UsageSource, day: str) -> DigestedDay:
    start = datetime.fromisoformat(day).replace(tzinfo=UTC)
    end = start + timedelta(days=1)
    brokers = list_brokers(source, start, end)
    if not brokers:
        return DigestedDay(day, why="Prometheus has no scrape of this cluster on that day")
    from quota_ops.sql.embedded_usage import join_parts  # noqa: PLC0415 - DuckDB

    scrapes = join_samples(
        read_parts(source, brokers, MEASURED_KEYS[0], start, end, selection=())
    ).up
    delayed = _read_delayed(source, brokers, Time(start, end))
    digest = parquet.from_rows(DIGEST, [])
    for part in _read_parts(source, brokers, scrapes, delayed, Time(start, end)):
        digest = pa.concat_tables([digest, part.cast(digest.schema)])
        if digest.num_rows > _MOST_ROWS:
            digest = join_parts(digest).cast(digest.schema)
    digest = join_parts(digest).cast(digest.schema)
    if not digest.num_rows:
        return DigestedDay(day, 0, len(brokers), why="no client has a series on that day")
    write_digest(store, cluster_id, day, digest)
    return _summarize(day, digest)


def _read_parts(
    source: UsageSource, brokers: Sequence[str], scrapes: pa.Table, delayed: pa.Table, time: Time
) -> Iterator[pa.Table]:
    from quota_ops.sql.embedded_usage import digest_day  # noqa: PLC0415 - DuckDB

    day = f"{time.start:%Y-%m-%d}"
    for key in MEASURED_KEYS:
        for part in read_parts(source, brokers, key, *time):
            if part.rates.num_rows:
                yield digest_day(part.rates, scrapes, delayed, day, source.step)


def _read_delayed(source: UsageSource, brokers: Sequence[str], time: Time) -> pa.Table:
    """Return the series that were throttled at all, with the columns of their names."""
    with open_prometheus(source.connection) as server:
        rows = [
            (broker, key, *names)
            for broker in brokers
            for key in MEASURED_KEYS
            for names in read_throttled(server, source, broker, key, time)
        ]
    return parquet.from_rows(DELAYED, rows)


def _summarize(day: str, digest: pa.Table) -> DigestedDay:
    is_client = pc.or_(pc.is_valid(digest["user_name"]), pc.is_valid(digest["client_id"]))
    series = digest.filter(is_client).group_by(["broker", "key", "user_name", "client_id"])
    is_seen = pc.and_(pc.invert(is_client), pc.is_null(digest["bucket"]))
    up = digest.filter(is_seen).group_by("broker").aggregate([("seconds", "max")])
    share = pc.sum(up["seconds_max"]).as_py() / (len(up) * timedelta(days=1).total_seconds())
    return DigestedDay(day, len(series.aggregate([])), len(up), min(share, 1.0))
