"""The use of a time that a Prometheus knows, beside the limits of that time."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from quota_ops.model.quotas.entity import Entity
from quota_ops.model.usage.use import AT_LIMIT
from quota_ops.runs.past_quotas import PastQuotas, Period
from quota_ops.runs.use_spans import KeyUse, Span, Use, find_limit
from quota_ops.usage.overview import Coverage, read_coverage, read_throttled, read_use
from quota_ops.usage.prometheus import Prometheus, open_prometheus
from quota_ops.usage.samples import join_samples, read_parts
from quota_ops.usage.source import SAMPLES, SeriesNames, SeriesUse, Time, UsageSource

FEW = 100
"""Up to how many series whose limit changed are measured by their samples."""


@contextmanager
def open_time(source: UsageSource, past: PastQuotas, time: Time) -> "Iterator[MeasuredTime]":
    """Open a time for queries. Raises UseUnknown if its coverage could not be read."""
    with open_prometheus(source.connection) as server:
        yield MeasuredTime(server, source, past, time, read_coverage(server, source, time))


class MeasuredTime(NamedTuple):
    """A time that a server knows, and how much of it was scraped."""

    server: Prometheus
    source: UsageSource
    past: PastQuotas
    time: Time
    coverage: Coverage

    def read(self, key: str) -> KeyUse:
        """Read the use of each series of a key. Raises UseUnknown if it could not be read."""
        return _Reading(*self, key).read()


@dataclass(frozen=True)
class _Reading:
    """What the use of one key is read with."""

    server: Prometheus
    source: UsageSource
    past: PastQuotas
    time: Time
    coverage: Coverage
    key: str

    @property
    def periods(self) -> list[Period]:
        """The periods in which the limits of the key did not change."""
        return self.past.periods(self.key, *self.time)

    def read(self) -> KeyUse:
        """Read the use of each series, by the spans of its limit."""
        uses: list[Use] = []
        throttled: set[SeriesNames] = set()
        at_limit: dict[tuple[str, Entity, SeriesNames], float] = defaultdict(float)
        spans: dict[SeriesNames, list[Span]] = {}
        for broker in self.coverage.seconds:
            found = read_use(self.server, self.source, broker, self.key, self.time)
            for series in found:
                if series.names not in spans:
                    spans[series.names] = self._find_spans(series.names)
            own = [Use(use, spans[use.names][0]) for use in found if len(spans[use.names]) == 1]
            changed = {use.names: spans[use.names] for use in found if len(spans[use.names]) > 1}
            own += self._read_changed(broker, changed)
            uses += own
            throttled |= read_throttled(self.server, self.source, broker, self.key, self.time)
            for quota, names, value in self._measure_at_limit(broker, own):
                at_limit[broker, quota, names] += value
        return KeyUse(uses, throttled, at_limit)

    def _find_spans(self, names: SeriesNames) -> list[Span]:
        """Return the spans of a series, without gaps."""
        found: list[Span] = []
        for period in self.periods:
            decided = {find_limit(self.key, limits, names) for limits in period.limits}
            is_known = len(decided) == 1
            quota, limit = next(iter(decided)) if is_known else (None, None)
            span = Span(Time(period.start, period.end), is_known, quota, limit)
            if found and found[-1][1:] == span[1:]:
                found[-1] = span._replace(time=Time(found[-1].time.start, period.end))
            else:
                found.append(span)
        return found

    def _read_changed(
        self, broker: str, changed: Mapping[SeriesNames, list[Span]]
    ) -> Iterator[Use]:
        """Yield the use of series whose limit changed, in each span.

        Few are measured by their samples; of many, for example of a changed default, each time
        between two of their changes is queried.
        """
        if not changed:
            return
        if len(changed) <= FEW:
            samples = join_samples(
                read_parts(self.source, [broker], self.key, *self.time, selection=changed.keys())
            ).rates
            for names, spans in changed.items():
                own = samples.filter(_is_of(samples, names))
                for span in spans:
                    values = own.filter(_is_within(own, span.time))["value"]
                    if len(values):
                        yield Use(_measure(broker, names, values), span)
            return
        times = {span.time for spans in changed.values() for span in spans}
        moments = sorted({moment for time in times for moment in time})
        for start, end in pairwise(moments):
            for use in read_use(self.server, self.source, broker, self.key, Time(start, end)):
                for span in changed.get(use.names, ()):
                    if span.time.start <= start and end <= span.time.end:
                        yield Use(use, span)

    def _measure_at_limit(
        self, broker: str, found: list[Use]
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
