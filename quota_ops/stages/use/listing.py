"""The quotas of a key with the use of their clients, beside the limits of that time."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from quota_ops.model.quotas.entity import CLIENT_ID, USER, Entity
from quota_ops.model.usage.series import SeriesNames, Time
from quota_ops.model.usage.use import SEEN, QuotaUse, SeriesShare, Verdict
from quota_ops.precedence.series import find_quota
from quota_ops.stages.use.past_limits import Limits, PastQuotas, Period
from quota_ops.stages.use.spans import KeyUse, Use

NOBODY = SeriesNames(None, None)


@dataclass(frozen=True)
class Listing:
    """The inputs of the listing for one quota key; `seen` has seconds by broker."""

    past: PastQuotas
    time: Time
    key: str
    is_exported: bool
    found: KeyUse
    seen: Mapping[str, float]

    @cached_property
    def periods(self) -> list[Period]:
        """The periods in which the limits of the key did not change."""
        return self.past.periods(self.key, *self.time)

    def list_quotas(self) -> Iterator[QuotaUse]:
        """Yield the use of each quota that the last look saw, by entity."""
        stored = self.past.looks[-1].stored.get(self.key, {}) if self.past.looks else {}
        placed = _place(self.found, stored)
        find_verdict = self._explain_unused(placed)
        for entity in sorted(stored, key=lambda entity: entity.text):
            series = [_share(uses) for uses in placed.by_quota[entity].values()]
            series.sort(key=lambda each: (each.share or 0.0, each.p95, each.highest), reverse=True)
            verdict, reason = Verdict.USED, None
            if not any(share.highest > 0 for share in series):
                (verdict, reason), series = find_verdict(entity), []
            owner = self.past.owners.get((entity, self.key))
            limit = stored[entity]
            yield QuotaUse(entity, self.key, limit, owner, verdict, reason, tuple(series))

    def _explain_unused(self, placed: "_Placed") -> Callable[[Entity], tuple[Verdict, str | None]]:
        """Return the function that decides what is known of a quota without use, and why."""
        unknown, is_seen, finer = self._explain_nothing(), self._is_seen(), _find_finer(self.found)

        def decide(entity: Entity) -> tuple[Verdict, str | None]:
            if unknown is not None:
                return Verdict.UNKNOWN, unknown
            if entity in placed.elsewhere:
                return Verdict.UNKNOWN, "brokers counted its clients by user and client id"
            if entity in placed.without_number:
                return Verdict.NOT_SEEN, "its samples are no numbers (NaN)"
            is_old = all(
                period.limits and all(entity in limits for limits in period.limits)
                for period in self.periods
            )
            verdict = Verdict.UNUSED if is_seen and is_old else Verdict.NOT_SEEN
            reason = None if is_old else "its limit is known for a part of the time only"
            return verdict, f"its clients use {finer[entity]}" if entity in finer else reason

        return decide

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
        if any(use.series.names == NOBODY and use.series.highest > 0 for use in self.found.uses):
            return "its series have no names of clients: the exporter or a scrape rule drops them"
        return None if self.found.uses else "no series of this key; see usage --probe"


class _Placed(NamedTuple):
    """The series of each quota, and the quotas whose use is not known.

    For the quotas in `elsewhere`, brokers counted use at a level that the recorded limits do not
    have; in `without_number`, all samples are NaN.
    """

    by_quota: Mapping[Entity, Mapping[SeriesNames, list[Use]]]
    elsewhere: set[Entity]
    without_number: set[Entity | None]


def _place(found: KeyUse, stored: Limits) -> _Placed:
    """Find the quota of each series: the one that decided then or, if that is not known, now."""
    by_quota: dict[Entity, dict[SeriesNames, list[Use]]] = defaultdict(lambda: defaultdict(list))
    elsewhere: set[Entity | None] = set()
    for use in found.uses:
        names, quota = use.series.names, use.quota
        if quota is None and use.series.highest > 0:
            if not use.span.is_known:
                quota = find_quota(stored, *names)
            elif None not in names:  # a quota of both names decided, which no run has read
                elsewhere |= {find_quota(stored, names.user, None)}
                elsewhere |= {find_quota(stored, None, names.client_id)}
        if quota is not None:
            by_quota[quota][names].append(use)
    nameless = {find_quota(stored, *names) for names in found.without_number}
    return _Placed(by_quota, {entity for entity in elsewhere if entity}, nameless)


def _share(uses: list[Use]) -> SeriesShare:
    """Return the use of a series under a quota: the highest of all brokers and limits.

    Percentiles of times with the same limit cannot be merged: that of the longest counts for all.
    """
    longest: dict[tuple[str, float | None], Use] = {}
    counted, at_limit_least, at_limit = (defaultdict[str, float](float) for _ in range(3))
    for use in sorted(uses, key=lambda use: use.series.counted):
        broker = use.series.broker
        longest[broker, use.limit] = use
        counted[broker] += use.series.counted
        at_limit_least[broker] += use.at_limit_least
        # Where no limit is known, it may have been at its limit.
        at_limit[broker] += use.at_limit if use.span.is_known else use.series.counted
    busiest = max(
        longest.values(), key=lambda use: (use.share or -1.0, use.series.p95, use.series.highest)
    )
    is_known = any(use.quota is not None for use in uses)
    return SeriesShare(
        *busiest.series.names,
        busiest.series.broker,
        max(use.series.median for use in longest.values()),
        busiest.series.p95,
        max(use.series.highest for use in uses),
        busiest.share,
        busiest.limit,
        max(at_limit_least.values()) if is_known else None,
        max(at_limit.values()) if is_known else None,
        any(use.throttled for use in uses),
        counted[busiest.series.broker],
    )


def _find_finer(found: KeyUse) -> dict[Entity, Entity]:
    """Return which quota the clients of an entity used in place of its own, if any."""
    finer: dict[Entity, Entity] = {}
    for use in found.uses:
        names = {USER: use.series.names.user, CLIENT_ID: use.series.names.client_id}
        named = {kind: name for kind, name in names.items() if name is not None}
        if use.quota is not None and use.series.highest > 0:
            for parts in (named, *({kind: name} for kind, name in named.items())):
                if (entity := Entity.of(parts)) != use.quota:
                    finer.setdefault(entity, use.quota)
    return finer
