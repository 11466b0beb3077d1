"""Read the use of past days from Prometheus into digests, for the days that have none."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from math import floor

import pyarrow as pa
import pyarrow.compute as pc

from quota_ops.model.errors import InvalidInput, UseUnknown
from quota_ops.model.plans.policy import Policy
from quota_ops.model.quotas.quota import MEASURED_KEYS
from quota_ops.model.text import command
from quota_ops.model.usage.digest import BUCKETS, DELAYED, DIGEST, DigestedDay
from quota_ops.model.usage.series import Time
from quota_ops.model.usage.use import explain_others, explain_step, find_stretch
from quota_ops.runs.past_quotas import read_past_quotas
from quota_ops.store.history.digests import find_digests, find_missing, list_past_days, write_digest
from quota_ops.store.places import parquet
from quota_ops.store.places.numbered_files import read_file
from quota_ops.store.places.run_store import RunStore
from quota_ops.usage.overview import find_interval, read_throttled
from quota_ops.usage.prometheus import open_prometheus
from quota_ops.usage.samples import join_samples, list_brokers, read_parts
from quota_ops.usage.source import UsageSource

_MOST_ROWS = 500_000
"""Rows of parts of a day that are kept before they are joined: 20 MB."""


def record_days(
    store: RunStore, policy: Policy, source: UsageSource, days: int | str
) -> list[DigestedDay]:
    """Write the missing digests of the last complete days (UTC), or that of one day.

    Raises like `digest_days`.
    """
    now, cluster_id = datetime.now(UTC), policy.cluster_id
    facts = read_past_quotas(store, policy.cluster, cluster_id, now).facts
    registered = len(facts.brokers) if facts else None
    wanted = [days] if isinstance(days, str) else list_past_days(now, days)
    missing = wanted if isinstance(days, str) else find_missing(store, cluster_id, wanted)
    return digest_days(store, cluster_id, source, missing, registered)


def require_newest(cluster: str, found: Sequence[DigestedDay], newest: str) -> None:
    """Raise UseUnknown if the newest day that was wanted could not be stored.

    Older ones may be before the first sample, so that nothing is wrong.
    """
    if found and found[-1].day == newest and found[-1].why:
        raise UseUnknown(
            f"the use of {cluster} on {found[-1].day} is unknown: {found[-1].why}",
            f"Run {command('usage', cluster)} --probe to see why.",
        )


def digest_days(
    store: RunStore,
    cluster_id: str,
    source: UsageSource,
    days: Sequence[str],
    registered: int | None = None,
) -> list[DigestedDay]:
    """Write the digest of each day; a day that cannot be read gets none, and may be read later.

    `registered` is how many brokers the cluster has, if a run has read it. Raises UseUnknown if
    Prometheus does not respond. Days that were written before stay.
    """
    found = [_digest_day(store, cluster_id, source, day) for day in days]
    if registered is None:
        return found
    return [
        day._replace(doubt=explain_others(day.brokers, registered))
        if day.why is None and day.brokers > registered
        else day
        for day in found
    ]


def _digest_day(store: RunStore, cluster_id: str, source: UsageSource, day: str) -> DigestedDay:
    start = datetime.fromisoformat(day).replace(tzinfo=UTC)
    end = start + timedelta(days=1)
    brokers = list_brokers(source, start, end)
    if not brokers:
        return DigestedDay(day, why="Prometheus has no scrape of this cluster on that day")
    scrapes = join_samples(
        read_parts(source, brokers, MEASURED_KEYS[0], start, end, selection=())
    ).up
    delayed = _read_delayed(source, brokers, Time(start, end))
    from quota_ops.sql.embedded_usage import digest_part  # noqa: PLC0415 - DuckDB

    digest_samples = partial(
        digest_part, scrapes=scrapes, delayed=delayed, day=day, step=source.step
    )
    parts = (read_parts(source, brokers, key, start, end) for key in MEASURED_KEYS)
    rates = ((part.rates for part in of_key if part.rates.num_rows) for of_key in parts)
    digest = pa.concat_tables(_digest_key(map(digest_samples, of_key)) for of_key in rates)
    if not digest.num_rows:
        return DigestedDay(day, 0, len(brokers), why="no client has a series on that day")
    found = summarize_day(day, digest)
    if not found.series:
        why = "no series of that day has the name of a user or a client id"
        return DigestedDay(day, 0, len(brokers), why=why)
    _refuse_less(store, cluster_id, found)
    write_digest(store, cluster_id, day, digest)
    times = [scrapes.filter(pc.equal(scrapes["broker"], broker))["time"] for broker in brokers]
    interval = find_interval([time.timestamp() for time in some.to_pylist()] for some in times)
    if interval and find_stretch(interval, source.step) > 1:
        return found._replace(doubt=explain_step(interval, source.step))
    return found


def _refuse_less(store: RunStore, cluster_id: str, found: DigestedDay) -> None:
    """Raise InvalidInput if more of a day is stored than was found; a damaged one is replaced."""
    for day, place in find_digests(store, cluster_id, [found.day]).items():
        try:
            stored = summarize_day(day, parquet.from_bytes(DIGEST, read_file(place), str(place)))
        except InvalidInput:
            return
        now, before = (floor(100 * each.share) for each in (found, stored))
        if now < before:
            raise InvalidInput(
                f"{day} stays as it is: Prometheus has {now} % of it, and {before} % are stored",
                f"To store less all the same, remove {place} first.",
            )


def _digest_key(parts: Iterable[pa.Table]) -> pa.Table:
    """Return DIGEST of a key from BUCKETS of parts, which are joined when they have doubled."""
    from quota_ops.sql.embedded_usage import join_parts, pack_day  # noqa: PLC0415 - DuckDB

    joined, most = parquet.from_rows(BUCKETS, []), _MOST_ROWS
    for part in parts:
        joined = pa.concat_tables([joined, part.cast(joined.schema)])
        if joined.num_rows > most:
            joined = join_parts(joined).cast(joined.schema)
            most = max(_MOST_ROWS, 2 * joined.num_rows)
    return pack_day(joined)


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


def summarize_day(day: str, digest: pa.Table) -> DigestedDay:
    """Return how many series a digest has, and how much of the day its brokers were seen."""
    is_client = pc.or_(pc.is_valid(digest["user_name"]), pc.is_valid(digest["client_id"]))
    up = digest.filter(pc.invert(is_client)).group_by("broker").aggregate([("idle", "max")])
    share = pc.sum(up["idle_max"]).as_py() / (len(up) * timedelta(days=1).total_seconds())
    return DigestedDay(day, pc.sum(is_client).as_py(), len(up), min(share, 1.0))
