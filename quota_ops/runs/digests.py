"""Read the use of past days from Prometheus into digests, for the days that have none."""

from collections.abc import Sequence
from datetime import UTC, datetime
from math import floor

import pyarrow as pa
import pyarrow.compute as pc

from quota_ops.model.errors import InvalidInput, UseUnknown
from quota_ops.model.plans.policy import Policy
from quota_ops.model.quotas.quota import MEASURED_KEYS
from quota_ops.model.text import command
from quota_ops.model.usage.digest import DELAYED, DIGEST, DigestedDay
from quota_ops.model.usage.seen import Run, count_each, count_together
from quota_ops.model.usage.series import Time, time_of
from quota_ops.model.usage.use import explain_others, explain_step, find_stretch
from quota_ops.runs.past_quotas import read_past_quotas
from quota_ops.store.history.digests import find_digests, find_missing, list_past_days, write_digest
from quota_ops.store.places import parquet
from quota_ops.store.places.numbered_files import read_file
from quota_ops.store.places.run_store import RunStore
from quota_ops.usage.overview import find_interval, read_throttled
from quota_ops.usage.prometheus import open_prometheus
from quota_ops.usage.samples import list_brokers, read_rates, read_scrapes
from quota_ops.usage.scrapes import find_seen
from quota_ops.usage.source import UsageSource

_SECONDS = 24 * 60 * 60


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
    time = time_of(day)
    brokers = list_brokers(source, *time)
    if not brokers:
        return DigestedDay(day, why="Prometheus has no scrape of this cluster on that day")
    scrapes = read_scrapes(source, brokers, time)
    delayed = _read_delayed(source, brokers, time)
    from quota_ops.sql.embedded_usage import add_seen, digest_part, pack_series  # DuckDB

    parts = [
        pack_series(digest_part(rates, scrapes, delayed, day, source.step))
        for key in MEASURED_KEYS
        for rates in read_rates(source, brokers, key, time)
    ]
    digest = add_seen(day, parts, find_seen(scrapes, source.step, time))
    if not digest.num_rows:
        return DigestedDay(day, 0, len(brokers), why="no client has a series on that day")
    found = summarize_day(day, digest)
    if not found.series:
        why = "no series of that day has the name of a user or a client id"
        return DigestedDay(day, 0, len(brokers), why=why)
    _refuse_less(store, cluster_id, day, digest)
    write_digest(store, cluster_id, day, digest)
    times = [scrapes.filter(pc.equal(scrapes["broker"], broker))["time"] for broker in brokers]
    interval = find_interval([time.timestamp() for time in some.to_pylist()] for some in times)
    if interval and find_stretch(interval, source.step) > 1:
        return found._replace(doubt=explain_step(interval, source.step))
    return found


def _refuse_less(store: RunStore, cluster_id: str, day: str, found: pa.Table) -> None:
    """Raise InvalidInput if more of a day is stored than was found; a damaged one is replaced."""
    for place in find_digests(store, cluster_id, [day]).values():
        try:
            stored = parquet.from_bytes(DIGEST, read_file(place), str(place))
        except InvalidInput:
            return
        of_each = [count_each(_read_seen(each)).values() for each in (found, stored)]
        brokers = max(map(len, of_each))
        now, before = (floor(100 * sum(each) / brokers / _SECONDS) for each in of_each)
        if now < before:
            raise InvalidInput(
                f"{day} stays as it is: Prometheus has {now} % of it, and {before} % are stored",
                f"To store less all the same, remove {place} first.",
            )


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
    """Return how many series a digest has, and in how much of the day all brokers were seen."""
    names, seen = ["user_name", "client_id"], _read_seen(digest)
    clients = digest.filter(_is_client(digest)).group_by(names).aggregate([])
    return DigestedDay(day, len(clients), len(seen), count_together(seen, None) / _SECONDS)


def _read_seen(digest: pa.Table) -> dict[str, list[Run]]:
    """Return when each broker of a digest was seen, in seconds of the day."""
    is_seen = pc.invert(pc.or_(_is_client(digest), pc.is_valid(digest["bucket"])))
    rows = digest.filter(is_seen).select(["broker", "seen"]).to_pylist()
    return {row["broker"]: [*zip(row["seen"][::2], row["seen"][1::2], strict=True)] for row in rows}


def _is_client(digest: pa.Table) -> pa.ChunkedArray:
    return pc.or_(pc.is_valid(digest["user_name"]), pc.is_valid(digest["client_id"]))
