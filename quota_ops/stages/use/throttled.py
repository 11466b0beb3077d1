"""The clients that brokers throttle at a moment, with the quotas that decide."""

from collections.abc import Callable, Sequence
from datetime import datetime

from msgspec.structs import replace

from quota_ops.model.clusters.cluster_facts import BrokerFacts
from quota_ops.model.clusters.scraped_brokers import match_brokers
from quota_ops.model.moment import iso_utc
from quota_ops.model.quotas.entity import CLIENT_ID, USER, Entity
from quota_ops.model.usage.series import SeriesNames
from quota_ops.model.usage.throttling import ThrottledClient, ThrottledNow
from quota_ops.precedence.resolution import find_quota
from quota_ops.stages.use.past_limits import PastQuotas
from quota_ops.usage.source import UsageSource


def find_throttled(
    source: UsageSource,
    now: datetime,
    brokers: Sequence[BrokerFacts],
    read_past: Callable[[], PastQuotas],
    *,
    patience: float | None = None,
    most: int | None = None,
) -> ThrottledNow:
    """Return the `most` clients that wait longest, beside the limits that a run saw last.

    `brokers` are the registered ones. `read_past` is called only if a client waits.

    Raises UseUnknown if it cannot be read within `patience` seconds a query.
    """
    from quota_ops.usage.overview import read_throttle_times  # an HTTP client

    up, waits = read_throttle_times(source, now, patience)
    matched = match_brokers(up, brokers)
    others = None if matched is None else matched.others
    longest = sorted(waits.items(), key=lambda found: -found[1][1])[:most]
    found = ThrottledNow(
        iso_utc(now),
        count=len(waits),
        seen=len(up) - len(others or ()),
        brokers=len(brokers),
        others=others,
    )
    if not longest:
        return found
    past = read_past()
    clients = (_describe(past, key, names, *longer) for (key, names), longer in longest)
    return replace(found, clients=tuple(clients))


def _describe(
    past: PastQuotas, key: str, names: SeriesNames, broker: str, wait: float
) -> ThrottledClient:
    """Return a throttled client with the stored quota that decides, and its owner in Git."""
    stored = past.looks[-1].stored.get(key, {}) if past.looks else {}
    quota = find_quota(stored, *names)
    parts = {kind: name for kind, name in zip((USER, CLIENT_ID), names, strict=True) if name}
    limit, owner = (stored[quota], past.owners.get((quota, key))) if quota else (None, None)
    client = Entity.of(parts).text
    return ThrottledClient(client, key, broker, wait, quota and quota.text, limit, owner)
