"""The use of a cluster's quotas: what was recorded or measured, beside the limits of that time."""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC
from typing import TYPE_CHECKING

from quota_ops.model.plans.policy import Policy
from quota_ops.model.quotas.entity import CLIENT_ID, USER, Entity
from quota_ops.model.usage.series import SeriesNames, Time
from quota_ops.model.usage.usage import USED_KEYS
from quota_ops.model.usage.use import SEEN, QuotaUse, SeriesShare, UseOverview, Verdict
from quota_ops.runs.past_quotas import PastQuotas, Period, read_past_quotas
from quota_ops.runs.recorded_use import DAY, read_recorded, time_of
from quota_ops.runs.use_spans import KeyUse, Use, join_uses
from quota_ops.store.history.digests import find_digests
from quota_ops.store.places.run_store import RunStore
from quota_ops.usage.presets import find_names
from quota_ops.usage.source import UsageSource

if TYPE_CHECKING:
    from quota_ops.runs.measured_use import MeasuredTime

Progress = Callable[[int, int], None]
"""Called with how many quota keys were read, and how many there are."""


def read_overview(
    source: UsageSource | None, policy: Policy, store: RunStore, time: Time, progress: Progress
) -> UseOverview:
    """Return the use of each quota that the last run saw.

    Recorded days are read from their digests, and the rest of the time from the source; without
    one, the rest is unknown. If the first day is recorded, the time begins with that day.

    Raises UseUnknown if Prometheus could not be read, InvalidInput for a run store that cannot be.
    """
    digests = find_digests(store, policy.cluster_id, _list_days(time))
    if (first := f"{time.start:%Y-%m-%d}") in digests:
        time = time._replace(start=time_of(first).start)
    past = read_past_quotas(store, policy.cluster, policy.cluster_id, time.start)
    recorded = read_recorded(digests, past)
    exported = find_names(policy.usage).rates if policy.usage else {}
    quotas: list[QuotaUse] = []
    unlimited: dict[str, int] = {}
    window = (time.end - time.start).total_seconds()
    known = [window]
    coverage: dict[str, float] = {}
    with ExitStack() as stack:
        gaps = _open_gaps(source, past, _list_gaps(time, digests), stack)
        for number, key in enumerate(USED_KEYS):
            progress(number, len(USED_KEYS))
            seen = Counter(recorded.seen.get(key, {}))
            for gap in gaps:
                seen.update(gap.coverage.seconds)
            coverage |= {broker: max(coverage.get(broker, 0.0), seen[broker]) for broker in seen}
            found = join_uses(
                [
                    *([recorded.uses[key]] if key in recorded.uses else []),
                    *(gap.read(key) for gap in gaps),
                ]
            )
            listing = _Listing(past, time, key, key in exported, found, seen)
            quotas += listing.list_quotas()
            if count := len({use.series.names for use in found.uses if _is_unlimited(use)}):
                unlimited[key] = count
            known.append(
                sum(
                    (period.end - period.start).total_seconds()
                    for period in past.periods(key, *time)
                    if period.limits
                )
            )
    progress(len(USED_KEYS), len(USED_KEYS))
    intervals = [gap.coverage.interval for gap in gaps]
    step = float(policy.usage.step) if policy.usage else 0.0
    return UseOverview(
        policy.cluster,
        *time,
        min(intervals, default=step),
        {broker: seconds / window for broker, seconds in sorted(coverage.items())},
        len(past.facts.brokers) if past.facts else None,
        min(known) / window,
        past.looks[-1].at if past.looks else None,
        quotas,
        unlimited,
        past.troubles,
        len(digests),
    )


def _list_days(time: Time) -> list[str]:
    """Return the days in UTC that end in a time, also one that it begins in."""
    days = []
    day = time.start.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    while (day := day + DAY) <= time.end:
        days.append(f"{day - DAY:%Y-%m-%d}")
    return days


def _list_gaps(time: Time, days: Collection[str]) -> Iterator[Time]:
    """Yield the parts of a time that are in none of some days, joined."""
    start = time.start
    for day in sorted(days):
        recorded = time_of(day)
        if start < recorded.start:
            yield Time(start, recorded.start)
        start = recorded.end
    if start < time.end:
        yield Time(start, time.end)


def _open_gaps(
    source: UsageSource | None, past: PastQuotas, gaps: Iterator[Time], stack: ExitStack
) -> "list[MeasuredTime]":
    if source is None:
        return []
    from quota_ops.runs.measured_use import open_time  # noqa: PLC0415 - an HTTP client

    return [stack.enter_context(open_time(source, past, time)) for time in gaps]


def _is_unlimited(use: Use) -> bool:
    return use.series.highest > 0 and use.span.is_known and use.quota is None


@dataclass(frozen=True)
class _Listing:
    """What the quotas of a key are listed from; `seen` are seconds by broker."""

    past: PastQuotas
    time: Time
    key: str
    is_exported: bool
    found: KeyUse
    seen: Mapping[str, float]

    @property
    def periods(self) -> list[Period]:
        """The periods in which the limits of the key did not change."""
        return self.past.periods(self.key, *self.time)

    def list_quotas(self) -> Iterator[QuotaUse]:
        """Yield the use of each quota that the last look saw, by entity."""
        found = self.found
        stored = self.past.looks[-1].stored.get(self.key, {}) if self.past.looks else {}
        by_quota: dict[Entity, dict[SeriesNames, list[Use]]] = defaultdict(
            lambda: defaultdict(list)
        )
        for use in found.uses:
            if use.quota is not None:
                by_quota[use.quota][use.series.names].append(use)
        at_limit: dict[tuple[Entity, SeriesNames], float] = {}
        for (_, quota, names), seconds in found.at_limit.items():
            at_limit[quota, names] = max(seconds, at_limit.get((quota, names), 0.0))
        unknown, is_seen = self._explain_nothing(), self._is_seen()
        for entity in sorted(stored, key=lambda entity: entity.text):
            series = [_share(uses, found, at_limit) for uses in by_quota[entity].values()]
            series.sort(key=lambda each: (each.share or 0.0, each.p95, each.highest), reverse=True)
            if any(share.highest > 0 for share in series):
                verdict, reason = Verdict.USED, None
            elif unknown is not None:
                verdict, reason, series = Verdict.UNKNOWN, unknown, []
            else:
                is_old = all(
                    entity in limits for period in self.periods for limits in period.limits
                )
                verdict = Verdict.UNUSED if is_seen and is_old else Verdict.NOT_SEEN
                reason, series = _explain_finer(entity, found), []
                reason = reason or (None if is_old else "stored for a part of the time")
            owner = self.past.owners.get((entity, self.key))
            limit = stored[entity]
            yield QuotaUse(entity, self.key, limit, owner, verdict, reason, tuple(series))

    def _is_seen(self) -> bool:
        """Return whether each registered broker was scraped all along, and limits are known."""
        window = (self.time.end - self.time.start).total_seconds()
        seconds = self.seen.values()
        return (
            self.past.facts is not None
            and len(seconds) >= len(self.past.facts.brokers)
            and min(seconds, default=0.0) >= SEEN * window
            and all(period.limits for period in self.periods)
        )

    def _explain_nothing(self) -> str | None:
        """Return why no series of the key shows anything; None if there are series."""
        if not self.is_exported:
            return "the preset has no metric of this key; set it in usage.metrics"
        if self.past.facts and self.past.facts.callback_classes:
            return "client.quota.callback.class of the brokers decides what is measured"
        return None if self.found.uses else "no series of this key; see usage --probe"


def _share(
    uses: list[Use], found: KeyUse, at_limit: Mapping[tuple[Entity, SeriesNames], float]
) -> SeriesShare:
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
        at_limit.get((quota, busiest.names), 0.0) if quota else 0.0,
        busiest.names in found.throttled,
    )


def _explain_finer(entity: Entity, found: KeyUse) -> str | None:
    """Return which quota the clients of an unused one used instead, if any."""
    parts = entity.as_dict()
    for use in found.uses:
        own = {USER: use.series.names.user, CLIENT_ID: use.series.names.client_id}
        is_of = all(name is not None and own[kind] == name for kind, name in parts.items())
        if is_of and use.quota not in {None, entity} and use.series.highest > 0:
            return f"its clients use {use.quota}"
    return None
