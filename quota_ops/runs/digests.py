"""Read the use of past days from Prometheus into digests, for the days that have none."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta

import pyarrow as pa

from quota_ops.model.plans.policy import Policy
from quota_ops.model.usage.digest import DIGEST, DigestedDay
from quota_ops.model.usage.usage import USED_KEYS
from quota_ops.store.history.digests import find_missing, list_past_days, write_digest
from quota_ops.store.places import parquet
from quota_ops.store.places.run_store import RunStore
from quota_ops.usage.samples import list_brokers, read_parts, read_samples
from quota_ops.usage.source import UsageSource, find_source

_MOST_ROWS = 1_000_000
"""Rows of the digests of parts that are kept before they are joined: 100 MB."""


def record_missing_days(store: RunStore, policy: Policy, days: int) -> list[DigestedDay]:
    """Write the digests of the last complete days (UTC) that have none.

    Raises as `digest_days`, and InvalidInput without `usage` in cluster.yaml.
    """
    past = list_past_days(datetime.now(UTC), days)
    missing = find_missing(store, policy.cluster_id, past)
    return digest_days(store, policy.cluster_id, find_source(policy), missing)


def digest_days(
    store: RunStore,
    cluster_id: str,
    source: UsageSource,
    days: Sequence[str],
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

    scrapes = read_samples(source, brokers, USED_KEYS[0], start, end, selection=()).up
    digest = parquet.from_rows(DIGEST, []).cast(parquet.arrow_schema(DIGEST))
    for part in _read_parts(source, brokers, scrapes, day, (start, end)):
        digest = pa.concat_tables([digest, part.cast(digest.schema)])
        if digest.num_rows > _MOST_ROWS:
            digest = join_parts(digest).cast(digest.schema)
    digest = join_parts(digest)
    if not digest.num_rows:
        return DigestedDay(day, 0, len(brokers), why="no client has a series on that day")
    write_digest(store, cluster_id, day, digest)
    return _summarize(day, digest)


def _read_parts(
    source: UsageSource,
    brokers: Sequence[str],
    scrapes: pa.Table,
    day: str,
    window: tuple[datetime, datetime],
) -> Iterator[pa.Table]:
    from quota_ops.sql.embedded_usage import digest_day  # noqa: PLC0415 - DuckDB

    for key in USED_KEYS:
        for part in read_parts(source, brokers, key, *window):
            if part.rates.num_rows:
                yield digest_day(part.rates, scrapes, day, source.step)


def _summarize(day: str, digest: pa.Table) -> DigestedDay:
    rows = list(parquet.read_rows(DIGEST, digest))
    series = {row[1:5] for row in rows if (row.user_name, row.client_id) != (None, None)}
    seen = {
        row.broker: row.seconds for row in rows if (row.user_name, row.client_id) == (None, None)
    }
    share = sum(seen.values()) / (len(seen) * timedelta(days=1).total_seconds())
    return DigestedDay(day, len(series), len(seen), min(share, 1.0))
