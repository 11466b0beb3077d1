"""The use of a cluster's quotas: what Prometheus recorded, beside the limits of that time."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow.compute as pc

from quota_ops.model.entity import CLIENT_ID, USER, Entity
from quota_ops.model.policy import Policy
from quota_ops.model.quota import limits_a_client
from quota_ops.model.usage import USED_KEYS
from quota_ops.model.use import AT_LIMIT, SEEN, QuotaUse, SeriesShare, UseOverview, Verdict
from quota_ops.precedence.series import find_quota
from quota_ops.runs.past_quotas import PastQuotas, Period, read_past_quotas
from quota_ops.store.run_store import RunStore
from quota_ops.usage.overview import (
    Coverage,
    SeriesUse,
    read_coverage,
    read_throttled,
    read_use,
)
from quota_ops.usage.prometheus import Prometheus, open_prometheus
from quota_ops.usage.samples import read_samples
from quota_ops.usage.source import SeriesNames, Time, UsageSource

Progress = Callable[[int, int], None]
"""Called with how many quota keys were read, and how many there are."""


class _Use(NamedTuple):
    """The use of a series on a broker in a period, and its quota and limit then, if known."""

    series: SeriesUse
    period: Period
    quota: Entity | None
    limit: float | None
    """None for an unlimited quota, too."""


class _KeyUse(NamedTuple):
    """What was read of one key.

    `at_limit` has the seconds at the limit, on the broker with the most.
    """

    uses: list[_Use]
    throttled: set[SeriesNames]
    at_limit: Mapping[tuple[Entity, SeriesNames], float]


def read_overview(
    source: UsageSource, policy: Policy, store: RunStore, time: Time, progress: Progress
) -> UseOverview:
    """Return the use of each quota that the last run saw.

    Raises UseUnknown if Prometheus could not be read, InvalidInput for a run store that cannot be.
    """
    past = read_past_quotas(store, policy.cluster, policy.cluster_id, time.start)
    quotas: list[QuotaUse] = []
    unlimited: dict[str, int] = {}
    window = (time.end - time.start).total_seconds()
    known = [window]
    with open_prometheus(source.connection) as server:
        coverage = read_coverage(server, source, time)
        for number, key in enumerate(USED_KEYS):
            progress(number, len(USED_KEYS))
            reading = _Reading(source, past, coverage, time, key)
            found = reading.read(server)
            quotas += reading.list_quotas(found)
            if count := len({use.series.names for use in found.uses if _is_unlimited(use)}):
                unlimited[key] = count
            known.append(
                sum(
                    (period.end - period.start).total_seconds()
                    for period in reading.periods
                    if period.limits is not None
                )
            )
    progress(len(USED_KEYS), len(USED_KEYS))
    return UseOverview(
        policy.cluster,
        *time,
        coverage.interval,
        {broker: seconds / window for broker, seconds in coverage.seconds.items()},
        len(past.facts.brokers) if past.facts else None,
        min(known) / window,
        past.looks[-1].at if past.looks else None,
        quotas,
        unlimited,
        past.troubles,
    )


def _is_unlimited(use: _Use) -> bool:
    return use.series.highest > 0 and use.period.limits is not None and use.quota is None


@dataclass(frozen=True)
class _Reading:
    """What the use of one key is read with."""

    source: UsageSource
    past: PastQuotas
    coverage: Coverage
    time: Time
    key: str

    @property
    def periods(self) -> list[Period]:
        """The periods in which the limits of the key did not change."""
        return self.past.periods(self.key, *self.time)

    def read(self, server: Prometheus) -> _KeyUse:
        """Read the use in each period, and for how long limits were reached."""
        uses: list[_Use] = []
        throttled: set[SeriesNames] = set()
        seconds: dict[tuple[Entity, SeriesNames, str], float] = defaultdict(float)
        for period in self.periods:
            time = Time(period.start, period.end)
            for broker in self.coverage.seconds:
                found = [
                    self._find_limit(series, period)
                    for series in read_use(server, self.source, broker, self.key, time)
                ]
                uses += found
                throttled |= read_throttled(server, self.source, broker, self.key, time)
                for use, value in self._measure_at_limit(broker, time, found):
                    seconds[use.quota, use.series.names, broker] += value  # type: ignore[index]
        most: dict[tuple[Entity, SeriesNames], float] = {}
        for (quota, names, _), value in seconds.items():
            most[quota, names] = max(value, most.get((quota, names), 0.0))
        return _KeyUse(uses, throttled, most)

    def _find_limit(self, series: SeriesUse, period: Period) -> _Use:
        if period.limits is None:
            return _Use(series, period, None, None)
        quota = find_quota(period.limits, *series.names)
        value = None if quota is None else period.limits[quota]
        is_limit = value is not None and limits_a_client(self.key, value)
        return _Use(series, period, quota, value if is_limit else None)

    def _measure_at_limit(
        self, broker: str, time: Time, found: list[_Use]
    ) -> Iterator[tuple[_Use, float]]:
        """Yield each use that reached its limit, and for how many seconds."""
        reached = [use for use in found if use.limit and use.series.highest >= AT_LIMIT * use.limit]
        if not reached:
            return
        names = {use.series.names for use in reached}
        samples = read_samples(self.source, [broker], self.key, *time, selection=names).rates
        for use in reached:
            user, client_id = use.series.names
            is_own = pc.and_(
                _equals(samples["user"], user), _equals(samples["client_id"], client_id)
            )
            is_at_limit = pc.greater_equal(samples["value"], AT_LIMIT * (use.limit or 0.0))
            count = pc.sum(pc.and_(is_own, is_at_limit)).as_py() or 0
            yield use, count * self.coverage.interval

    def list_quotas(self, found: _KeyUse) -> Iterator[QuotaUse]:
        """Yield the use of each quota that the last look saw, by entity."""
        stored = self.past.looks[-1].stored.get(self.key, {}) if self.past.looks else {}
        by_quota: dict[Entity, dict[SeriesNames, list[_Use]]] = defaultdict(
            lambda: defaultdict(list)
        )
        for use in found.uses:
            if use.quota is not None:
                by_quota[use.quota][use.series.names].append(use)
        unknown, is_seen = self._explain_nothing(found), self._is_seen()
        for entity in sorted(stored, key=lambda entity: entity.text):
            series = [_share(uses, found) for uses in by_quota[entity].values()]
            series.sort(key=lambda each: (each.share or 0.0, each.p95, each.highest), reverse=True)
            if any(share.highest > 0 for share in series):
                verdict, reason = Verdict.USED, None
            elif unknown is not None:
                verdict, reason, series = Verdict.UNKNOWN, unknown, []
            else:
                verdict = Verdict.UNUSED if is_seen else Verdict.NOT_SEEN
                reason, series = _explain_finer(entity, found), []
            owner = self.past.owners.get((entity, self.key))
            limit = stored[entity]
            yield QuotaUse(entity, self.key, limit, owner, verdict, reason, tuple(series))

    def _is_seen(self) -> bool:
        """Return whether each registered broker was scraped all along, and limits are known."""
        window = (self.time.end - self.time.start).total_seconds()
        seconds = self.coverage.seconds.values()
        return (
            self.past.facts is not None
            and len(seconds) >= len(self.past.facts.brokers)
            and min(seconds, default=0.0) >= SEEN * window
            and all(period.limits is not None for period in self.periods)
        )

    def _explain_nothing(self, found: _KeyUse) -> str | None:
        """Return why no series of the key shows anything; None if there are series."""
        if self.key not in self.source.names.rates:
            return "the preset has no metric of this key; set it in usage.metrics"
        if self.past.facts and self.past.facts.callback_classes:
            return "client.quota.callback.class of the brokers decides what is measured"
        return None if found.uses else "no series of this key; see usage --probe"


def _equals(column: Any, text: str | None) -> Any:
    if text is None:
        return pc.is_null(column)
    return pc.fill_null(pc.equal(column, text), fill_value=False)


def _share(uses: list[_Use], found: _KeyUse) -> SeriesShare:
    """Return the use of a series under a quota: the highest of all brokers and periods."""
    busiest = max((use.series for use in uses), key=lambda series: (series.p95, series.highest))
    shares = [(use.series.p95 / use.limit, use.limit) for use in uses if use.limit]
    share, limit = max(shares, default=(None, None))
    quota = uses[0].quota
    return SeriesShare(
        *busiest.names,
        busiest.broker,
        max(use.series.median for use in uses),
        busiest.p95,
        max(use.series.highest for use in uses),
        share,
        limit,
        found.at_limit.get((quota, busiest.names), 0.0) if quota else 0.0,
        busiest.names in found.throttled,
    )


def _explain_finer(entity: Entity, found: _KeyUse) -> str | None:
    """Return which quota the clients of an unused one used instead, if any."""
    parts = entity.as_dict()
    for use in found.uses:
        own = {USER: use.series.names.user, CLIENT_ID: use.series.names.client_id}
        is_of = all(name is not None and own[kind] == name for kind, name in parts.items())
        if is_of and use.quota not in {None, entity} and use.series.highest > 0:
            return f"its clients use {use.quota}"
    return None
