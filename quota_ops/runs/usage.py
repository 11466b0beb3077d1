"""The use of a cluster's quotas: what Prometheus recorded, beside the limits of that time."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from quota_ops.model.plans.policy import Policy
from quota_ops.model.quotas.entity import CLIENT_ID, USER, Entity
from quota_ops.model.quotas.quota import limits_a_client
from quota_ops.model.usage.usage import USED_KEYS
from quota_ops.model.usage.use import AT_LIMIT, SEEN, QuotaUse, SeriesShare, UseOverview, Verdict
from quota_ops.precedence.series import find_quota
from quota_ops.runs.past_quotas import Limits, PastQuotas, Period, read_past_quotas
from quota_ops.store.places.run_store import RunStore
from quota_ops.usage.overview import (
    Coverage,
    SeriesUse,
    read_coverage,
    read_throttled,
    read_use,
)
from quota_ops.usage.prometheus import Prometheus, open_prometheus
from quota_ops.usage.samples import read_parts, read_samples
from quota_ops.usage.source import SAMPLES, SeriesNames, Time, UsageSource

FEW = 100
"""Up to how many series whose limit changed are measured by their samples."""
Progress = Callable[[int, int], None]
"""Called with how many quota keys were read, and how many there are."""


class _Span(NamedTuple):
    """A time in which the limit of a series did not change."""

    time: Time
    is_known: bool
    """Whether it is known which quota decided, and its value."""
    quota: Entity | None
    limit: float | None
    """None for an unlimited quota, too."""


class _Use(NamedTuple):
    """The use of a series on a broker in a span."""

    series: SeriesUse
    span: _Span

    @property
    def quota(self) -> Entity | None:
        """The quota that decided then, if it is known and there was one."""
        return self.span.quota

    @property
    def limit(self) -> float | None:
        """The limit of that quota."""
        return self.span.limit


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
                    if period.limits
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
    return use.series.highest > 0 and use.span.is_known and use.quota is None


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
        """Read the use of each series, by the spans of its limit."""
        uses: list[_Use] = []
        throttled: set[SeriesNames] = set()
        seconds: dict[tuple[Entity, SeriesNames], float] = defaultdict(float)
        spans: dict[SeriesNames, list[_Span]] = {}
        for broker in self.coverage.seconds:
            found = read_use(server, self.source, broker, self.key, self.time)
            for series in found:
                if series.names not in spans:
                    spans[series.names] = self._find_spans(series.names)
            own = [_Use(use, spans[use.names][0]) for use in found if len(spans[use.names]) == 1]
            changed = {use.names: spans[use.names] for use in found if len(spans[use.names]) > 1}
            own += self._read_changed(server, broker, changed)
            uses += own
            throttled |= read_throttled(server, self.source, broker, self.key, self.time)
            at_limit: dict[tuple[Entity, SeriesNames], float] = defaultdict(float)
            for quota, names, value in self._measure_at_limit(broker, own):
                at_limit[quota, names] += value
            for of_series, value in at_limit.items():
                seconds[of_series] = max(seconds[of_series], value)
        return _KeyUse(uses, throttled, seconds)

    def _find_spans(self, names: SeriesNames) -> list[_Span]:
        """Return the spans of a series, without gaps."""
        found: list[_Span] = []
        for period in self.periods:
            decided = {self._find_limit(limits, names) for limits in period.limits}
            is_known = len(decided) == 1
            quota, limit = next(iter(decided)) if is_known else (None, None)
            span = _Span(Time(period.start, period.end), is_known, quota, limit)
            if found and found[-1][1:] == span[1:]:
                found[-1] = span._replace(time=Time(found[-1].time.start, period.end))
            else:
                found.append(span)
        return found

    def _find_limit(self, limits: Limits, names: SeriesNames) -> tuple[Entity | None, float | None]:
        quota = find_quota(limits, *names)
        value = None if quota is None else limits[quota]
        return quota, value if value is not None and limits_a_client(self.key, value) else None

    def _read_changed(
        self, server: Prometheus, broker: str, changed: Mapping[SeriesNames, list[_Span]]
    ) -> Iterator[_Use]:
        """Yield the use of series whose limit changed, in each span.

        Few are measured by their samples; of many, for example of a changed default, each time
        between two of their changes is queried.
        """
        if not changed:
            return
        if len(changed) <= FEW:
            samples = read_samples(
                self.source, [broker], self.key, *self.time, selection=changed.keys()
            ).rates
            for names, spans in changed.items():
                own = samples.filter(_is_of(samples, names))
                for span in spans:
                    values = own.filter(_is_within(own, span.time))["value"]
                    if len(values):
                        yield _Use(_measure(broker, names, values), span)
            return
        times = {span.time for spans in changed.values() for span in spans}
        moments = sorted({moment for time in times for moment in time})
        for start, end in pairwise(moments):
            for use in read_use(server, self.source, broker, self.key, Time(start, end)):
                for span in changed.get(use.names, ()):
                    if span.time.start <= start and end <= span.time.end:
                        yield _Use(use, span)

    def _measure_at_limit(
        self, broker: str, found: list[_Use]
    ) -> Iterator[tuple[Entity, SeriesNames, float]]:
        """Yield for how many seconds each use that reached its limit did so."""
        reached = [use for use in found if use.limit and use.series.highest >= AT_LIMIT * use.limit]
        if not reached:
            return
        spans = list(dict.fromkeys((use.series.names, use.span) for use in reached))
        limits = pa.table(
            {
                "user": [names.user for names, _ in spans],
                "client_id": [names.client_id for names, _ in spans],
                "start": pa.array([span.time.start for _, span in spans], _MOMENT),
                "end": pa.array([span.time.end for _, span in spans], _MOMENT),
                "least": [AT_LIMIT * (span.limit or 0.0) for _, span in spans],
                "number": range(len(spans)),
            }
        )
        wanted = {names for names, _ in spans}
        counts: Counter[int] = Counter()
        parts = read_parts(self.source, [broker], self.key, *self.time, selection=wanted)
        for samples, _ in parts:
            rows = _name_nulls(samples).join(_name_nulls(limits), _NAMES, join_type="inner")
            is_own = pc.and_(
                pc.greater(rows["time"], rows["start"]), pc.less_equal(rows["time"], rows["end"])
            )
            is_at_limit = pc.and_(is_own, pc.greater_equal(rows["value"], rows["least"]))
            counts.update(rows.filter(is_at_limit)["number"].to_pylist())
        for number, count in counts.items():
            names, span = spans[number]
            if span.quota is not None:
                yield span.quota, names, count * self.coverage.interval

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
        seconds = self.coverage.seconds.values()
        return (
            self.past.facts is not None
            and len(seconds) >= len(self.past.facts.brokers)
            and min(seconds, default=0.0) >= SEEN * window
            and all(period.limits for period in self.periods)
        )

    def _explain_nothing(self, found: _KeyUse) -> str | None:
        """Return why no series of the key shows anything; None if there are series."""
        if self.key not in self.source.names.rates:
            return "the preset has no metric of this key; set it in usage.metrics"
        if self.past.facts and self.past.facts.callback_classes:
            return "client.quota.callback.class of the brokers decides what is measured"
        return None if found.uses else "no series of this key; see usage --probe"


_NAMES = ["user", "client_id"]
_MOMENT = SAMPLES.field("time").type
_NO_LABEL = "\0"
"""A name that no client has: null equals nothing in a join."""


def _name_nulls(rows: pa.Table) -> pa.Table:
    for name in _NAMES:
        filled = pc.fill_null(rows[name].cast(pa.string()), _NO_LABEL)
        rows = rows.set_column(rows.schema.get_field_index(name), name, filled)
    return rows


def _is_of(samples: pa.Table, names: SeriesNames) -> Any:
    masks = (
        pc.is_null(samples[name])
        if text is None
        else pc.fill_null(pc.equal(samples[name], text), fill_value=False)
        for name, text in names._asdict().items()
    )
    return pc.and_(*masks)


def _is_within(samples: pa.Table, time: Time) -> Any:
    start, end = (pa.scalar(moment, samples["time"].type) for moment in time)
    return pc.and_(pc.greater(samples["time"], start), pc.less_equal(samples["time"], end))


def _measure(broker: str, names: SeriesNames, values: Any) -> SeriesUse:
    """Return the same as Prometheus would of these samples."""
    median, p95 = pc.quantile(values, q=[0.5, 0.95]).to_pylist()
    return SeriesUse(broker, names, median, p95, pc.max(values).as_py())


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
