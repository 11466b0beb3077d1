"""The quotas of a key with the use of their clients, beside the limits of that time."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from datetime import datetime
from functools import cached_property
from typing import NamedTuple

from msgspec import Struct

from quota_ops.model.moment import iso_utc
from quota_ops.model.quotas.entity import CLIENT_ID, USER, Entity
from quota_ops.model.usage.seen import SeenBrokers, count_together
from quota_ops.model.usage.series import SeriesNames, Time
from quota_ops.model.usage.use import SEEN, QuotaUse, SeriesShare, UseVerdict
from quota_ops.precedence.resolution import find_quota
from quota_ops.stages.use.past_limits import Limits, PastQuotas, Period
from quota_ops.stages.use.spans import SeriesUse

NOBODY = SeriesNames(None, None)


class Listing(Struct, frozen=True, dict=True):
    """The inputs of the listing for one quota key."""

    past: PastQuotas
    time: Time
    key: str
    is_exported: bool
    uses: Collection[SeriesUse]
    seen: SeenBrokers
    is_read: bool = True
    """Whether any part of the time could be read, from a recorded day or from Prometheus."""

    @cached_property
    def periods(self) -> list[Period]:
        """The periods in which the limits of the key did not change."""
        return self.past.periods(self.key, *self.time)

    def list_quotas(self) -> Iterator[QuotaUse]:
        """Yield the use of each quota that the last look saw, by entity."""
        stored = self.past.looks[-1].stored.get(self.key, {}) if self.past.looks else {}
        placed = _place(self.uses, stored)
        find_verdict = self._explain_unused(placed)
        for entity in sorted(stored, key=lambda entity: entity.text):
            series = [_share(uses) for uses in placed.by_quota[entity].values()]
            series.sort(key=lambda each: (each.share or 0.0, each.p95, each.highest), reverse=True)
            verdict, reason = UseVerdict.USED, None
            if not any(share.highest > 0 for share in series):
                (verdict, reason), series = find_verdict(entity), []
            owner = self.past.owners.get((entity, self.key))
            limit = stored[entity]
            yield QuotaUse(entity, self.key, limit, owner, verdict, reason, tuple(series))

    def _explain_unused(
        self, placed: "_Placed"
    ) -> Callable[[Entity], tuple[UseVerdict, str | None]]:
        """Return the function that decides what is known of a quota without use, and why."""
        unknown, is_seen, finer = self._explain_nothing(), self._is_seen(), _find_finer(self.uses)

        def decide(entity: Entity) -> tuple[UseVerdict, str | None]:
            if unknown is not None:
                return UseVerdict.UNKNOWN, unknown
            if entity in placed.elsewhere:
                return UseVerdict.UNKNOWN, "brokers counted its clients by user and client id"
            if entity in placed.without_number:
                return UseVerdict.NOT_SEEN, "its samples are no numbers (NaN)"
            since = self._find_since(entity)
            is_old = since <= self.time.start
            verdict = UseVerdict.UNUSED if is_seen and is_old else UseVerdict.NOT_SEEN
            reason = None if is_old else f"stored since {iso_utc(since)}, as far as runs have read"
            return verdict, f"its clients use {finer[entity]}" if entity in finer else reason

        return decide

    def _find_since(self, entity: Entity) -> datetime:
        """Return from when on a quota was stored until the end, as far as runs have read it."""
        since = self.time.end
        for period in reversed(self.periods):
            if not period.limits or not all(entity in limits for limits in period.limits):
                break
            since = period.start
        return since

    def _is_seen(self) -> bool:
        """Return whether all registered brokers were seen all along, and limits are known."""
        window, facts = (self.time.end - self.time.start).total_seconds(), self.past.facts
        return (
            facts is not None
            and count_together(self.seen, facts.brokers) >= SEEN * window
            and all(period.limits for period in self.periods)
        )

    def _explain_nothing(self) -> str | None:
        """Return why no series of the key shows anything; None if there are series."""
        if not self.is_read:
            return "no day of that time is recorded and can be read"
        if not self.is_exported:
            return "the preset has no metric of this key; set it in usage.metrics"
        if self.past.facts and self.past.facts.callback_classes:
            return "client.quota.callback.class of the brokers decides what is measured"
        if any(use.row.names == NOBODY and use.row.highest > 0 for use in self.uses):
            return "its series have no names of clients: the exporter or a scrape rule drops them"
        return (
            None
            if any(use.row.counted for use in self.uses)
            else "no series of this key; see usage --probe"
        )


class _Placed(NamedTuple):
    """The series of each quota, and the quotas whose use is not known.

    For the quotas in `elsewhere`, brokers counted use at a level that the recorded limits do not
    have; in `without_number`, all samples are NaN.
    """

    by_quota: Mapping[Entity, Mapping[SeriesNames, list[SeriesUse]]]
    elsewhere: set[Entity]
    without_number: set[Entity | None]


def _place(uses: Collection[SeriesUse], stored: Limits) -> _Placed:
    """Find the quota of each series: the one that decided then or, if that is not known, now."""
    by_quota: dict[Entity, dict[SeriesNames, list[SeriesUse]]] = defaultdict(
        lambda: defaultdict(list)
    )
    elsewhere, without_number = set[Entity | None](), set[Entity | None]()
    for use in uses:
        names, quota = use.row.names, use.span.quota
        if not use.row.counted:
            without_number.add(find_quota(stored, *names))
            continue
        if quota is None and use.row.highest > 0:
            if not use.span.is_known:
                quota = find_quota(stored, *names)
            elif None not in names:  # a quota of both names decided, which no run has read
                elsewhere |= {find_quota(stored, names.user, None)}
                elsewhere |= {find_quota(stored, None, names.client_id)}
        if quota is not None:
            by_quota[quota][names].append(use)
    return _Placed(by_quota, {entity for entity in elsewhere if entity}, without_number)


def _share(uses: Collection[SeriesUse]) -> SeriesShare:
    """Return the use of a series under a quota: the highest of all brokers and limits."""
    counted, at_limit_least, at_limit = (defaultdict[str, float](float) for _ in range(3))
    for row, span in uses:
        counted[row.broker] += row.counted
        at_limit_least[row.broker] += row.at_limit_least
        # Where no limit is known, or not which one throttled it, it may have been at its limit.
        is_known = span.has_one_limit or not (span.lowest is None or row.throttled)
        at_limit[row.broker] += row.at_limit if is_known else row.counted
    busiest = max(uses, key=lambda use: (use.share or -1.0, use.row.p95, use.row.highest))
    is_known = any(use.span.quota is not None for use in uses)
    return SeriesShare(
        *busiest.row.names,
        busiest.row.broker,
        busiest.row.p50,
        busiest.row.p95,
        max(use.row.highest for use in uses),
        busiest.share,
        busiest.span.limit,
        max(at_limit_least.values()) if is_known else None,
        max(at_limit.values()) if is_known else None,
        any(use.row.throttled and use.span.has_one_limit for use in uses),
        counted[busiest.row.broker],
        busiest.row.counted,
    )


def _find_finer(uses: Collection[SeriesUse]) -> dict[Entity, Entity]:
    """Return which quota the clients of an entity used in place of its own, if any."""
    finer: dict[Entity, Entity] = {}
    for use in uses:
        names = {USER: use.row.user_name, CLIENT_ID: use.row.client_id}
        named = {kind: name for kind, name in names.items() if name is not None}
        if use.span.quota is not None and use.row.highest > 0:
            for parts in (named, *({kind: name} for kind, name in named.items())):
                if (entity := Entity.of(parts)) != use.span.quota:
                    finer.setdefault(entity, use.span.quota)
    return finer
