"""The use of a time that a Prometheus knows, beside the limits of that time."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from typing import NamedTuple

from quota_ops.model.usage.digest import ShareRow
from quota_ops.model.usage.series import SeriesNames, Time
from quota_ops.model.usage.use import AT_LIMIT, find_stretch
from quota_ops.stages.use.past_limits import PastQuotas, Period
from quota_ops.stages.use.spans import SeriesUse, Span, find_span
from quota_ops.usage.overview import Coverage, read_coverage, read_throttled, read_use
from quota_ops.usage.prometheus import Prometheus, open_prometheus
from quota_ops.usage.samples import read_rates, read_scrapes
from quota_ops.usage.source import UsageSource

_LINGERS = timedelta(seconds=70)
"""How long a throttle time stays after the last throttled response; brokers took 59 to 70 s."""
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

    def read(self, key: str) -> list[SeriesUse]:
        """Read the use of each series of a key, in each time in which its limit did not change.

        Raises UseUnknown if it could not be read.
        """
        found: list[SeriesUse] = []
        periods = self.past.periods(key, *self.time)
        spans: dict[SeriesNames, list[tuple[Time, Span]]] = {}
        for broker in self.coverage.seen:
            interval = self.coverage.counted
            read = partial(read_use, self.server, self.source, broker, key, interval=interval)
            rows = {self.time: read(self.time)}
            for row in rows[self.time]:
                if row.names not in spans:
                    spans[row.names] = _find_spans(key, periods, row.names)
            for time in sorted({time for own in spans.values() for time, _ in own} - {*rows}):
                rows[time] = read(time)
            uses: dict[Time, list[SeriesUse]] = {
                time: [
                    SeriesUse(row._replace(throttled=row.names in throttled), span)
                    for row in some
                    for own, span in spans.get(row.names, ())
                    if own == time
                ]
                for time, some in rows.items()
                for throttled in [self._read_throttled(broker, key, time)]
            }
            found += self._measure_at_limit(broker, key, uses)
        return found

    def _read_throttled(self, broker: str, key: str, time: Time) -> set[SeriesNames]:
        """Return the series that were throttled by the limits of a time.

        A throttle time lingers, so right after a change it may be that of the limits before.
        """
        start = time.start if time.start == self.time.start else time.start + _LINGERS
        if start >= time.end:
            return set()
        return read_throttled(self.server, self.source, broker, key, Time(start, time.end))

    def _measure_at_limit(
        self, broker: str, key: str, uses: Mapping[Time, Sequence[SeriesUse]]
    ) -> Iterator[SeriesUse]:
        """Yield the uses, with for how many seconds those that reached their limit did so.

        It is measured for those that are nearest to it, because their samples are read. Of others,
        it was one scrape at least, and all of their scrapes at most. So it was of those whose limit
        is one of several.
        """
        from quota_ops.sql.embedded_usage import find_delays  # DuckDB

        reached = [use for some in uses.values() for use in some if _has_reached(use)]
        reached.sort(key=lambda use: use.row.p95 / (use.span.lowest or 1.0), reverse=True)
        nearest = {*reached[:MOST_MEASURED]}
        stretch = find_stretch(self.coverage.interval, self.coverage.step)
        interval = max(1, round(self.coverage.counted))
        for time, some in uses.items():
            measured = {
                use.row.names: use.span.limit
                for use in some
                if use in nearest and use.span.limit == use.span.lowest
            }
            shares = [
                ShareRow(f"{number}", key, *names, limit or 0.0, limit)
                for number, (names, limit) in enumerate(measured.items())
            ]
            seconds = dict.fromkeys(measured, 0.0)
            brokers = [broker] if measured else []
            scrapes = read_scrapes(self.source, brokers, time)
            for rates in read_rates(self.source, brokers, key, time, selection={*measured}):
                for found in find_delays(rates, scrapes, shares, interval):
                    seconds[SeriesNames(*shares[int(found.shared_by)][2:4])] += found.at_present
            for use in some:
                row, limit = use.row, use.span.limit
                least = most = seconds.get(row.names, 0.0)
                if _has_reached(use) and row.names not in measured:
                    is_sure = limit is not None and row.highest >= AT_LIMIT * limit
                    least, most = self.coverage.counted if is_sure else 0.0, row.counted
                yield use._replace(row=row._replace(at_limit_least=least, at_limit=stretch * most))


def _has_reached(use: SeriesUse) -> bool:
    """Return whether the highest use was at the limit, or at the lowest that it may have been."""
    return bool(use.span.lowest) and use.row.highest >= AT_LIMIT * (use.span.lowest or 0.0)


def _find_spans(key: str, periods: Iterable[Period], names: SeriesNames) -> list[tuple[Time, Span]]:
    """Return the spans of a series, each with its time, without gaps."""
    found: list[tuple[Time, Span]] = []
    for period in periods:
        start, span = period.start, find_span(key, [period], names)
        if found and found[-1][1] == span:
            start = found.pop()[0].start
        found.append((Time(start, period.end), span))
    return found
