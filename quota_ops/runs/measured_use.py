"""The use of a time that a Prometheus knows, beside the limits of that time."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from math import isnan
from typing import NamedTuple

from quota_ops.model.usage.digest import ShareRow
from quota_ops.model.usage.series import SeriesNames, Time
from quota_ops.model.usage.use import AT_LIMIT, find_stretch
from quota_ops.stages.use.past_limits import PastQuotas, Period
from quota_ops.stages.use.spans import KeyUse, Span, Use, find_span
from quota_ops.usage.overview import Coverage, read_coverage, read_throttled, read_use
from quota_ops.usage.prometheus import Prometheus, open_prometheus
from quota_ops.usage.samples import read_parts
from quota_ops.usage.source import UsageSource

MOST_MEASURED = 200
"""For how many series of a broker and a key the time at the limit is measured."""


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
        """Read the use of each series of a key, by the spans of its limit.

        Raises UseUnknown if it could not be read.
        """
        found = KeyUse([], set())
        periods = self.past.periods(key, *self.time)
        spans: dict[SeriesNames, list[Span]] = {}
        for broker in self.coverage.seconds:
            interval = self.coverage.counted
            read = partial(read_use, self.server, self.source, broker, key, interval=interval)
            uses = {self.time: read(self.time)}
            found.without_number.update(
                series.names for series in uses[self.time] if isnan(series.highest)
            )
            for series in uses[self.time]:
                if series.names not in spans:
                    spans[series.names] = _find_spans(key, periods, series.names)
            for time in sorted({span.time for own in spans.values() for span in own} - {*uses}):
                uses[time] = read(time)
            throttled = read_throttled(self.server, self.source, broker, key, self.time)
            own = [
                Use(series, span, series.names in throttled)
                for time, some in uses.items()
                for series in some
                if not isnan(series.highest)
                for span in spans.get(series.names, ())
                if span.time == time
            ]
            found.uses.extend(self._measure_at_limit(broker, key, own))
        return found

    def _measure_at_limit(self, broker: str, key: str, uses: list[Use]) -> list[Use]:
        """Return the uses, with for how many seconds those that reached their limit did so.

        It is measured for those that are nearest to it, because their samples are read. Of others,
        it was one scrape at least, and all of their scrapes at most. So it was of those whose limit
        is one of several.
        """
        from quota_ops.sql.embedded_usage import find_delays  # noqa: PLC0415 - DuckDB

        found = [*uses]
        nearest = sorted(
            (number for number, use in enumerate(uses) if use.has_reached),
            key=lambda number: uses[number].series.p95 / (uses[number].limit or 1.0),
            reverse=True,
        )
        reached: dict[Time, list[int]] = defaultdict(list)
        stretch = find_stretch(self.coverage.interval, self.coverage.step)
        for place, number in enumerate(nearest):
            use = uses[number]
            if place < MOST_MEASURED and use.limit == use.span.lowest:
                reached[use.span.time].append(number)
                continue
            is_sure = use.limit is not None and use.series.highest >= AT_LIMIT * use.limit
            found[number] = use._replace(
                at_limit_least=self.coverage.counted if is_sure else 0.0,
                at_limit=stretch * use.series.counted,
            )
        interval = max(1, round(self.coverage.counted))
        for time, numbers in reached.items():
            some = {str(number): uses[number] for number in numbers}
            shares = [
                ShareRow(number, key, *use.series.names, use.limit or 0.0, use.limit)
                for number, use in some.items()
            ]
            names = {use.series.names for use in some.values()}
            for samples in read_parts(self.source, [broker], key, *time, selection=names):
                for row in find_delays(*samples, shares, interval):
                    before, seconds = found[int(row.shared_by)], row.at_present
                    found[int(row.shared_by)] = before._replace(
                        at_limit_least=before.at_limit_least + seconds,
                        at_limit=before.at_limit + stretch * seconds,
                    )
        return found


def _find_spans(key: str, periods: Iterable[Period], names: SeriesNames) -> list[Span]:
    """Return the spans of a series, without gaps."""
    found: list[Span] = []
    for period in periods:
        span = find_span(key, [period], names, Time(period.start, period.end))
        if found and found[-1][1:] == span[1:]:
            found[-1] = span._replace(time=Time(found[-1].time.start, period.end))
        else:
            found.append(span)
    return found
