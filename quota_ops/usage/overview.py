"""The use of every series in a time, by few queries: percentiles, the highest value, coverage.

Percentiles of parts cannot be merged. If a time has to be divided, the percentile of the busiest
part stands for the whole: it is never below that of the whole.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from itertools import pairwise
from math import isnan
from statistics import median
from typing import NamedTuple

from quota_ops.model.usage.series import SeriesNames, SeriesUse, Time
from quota_ops.model.usage.usage import Metric
from quota_ops.usage.labels import quote_text
from quota_ops.usage.prometheus import Prometheus, QueryTooLarge
from quota_ops.usage.samples import UP, format_range, read_names
from quota_ops.usage.source import UsageSource

_SHORTEST = timedelta(hours=1)
_STATISTICS = {
    "median": "quantile_over_time(0.5, {})",
    "p95": "quantile_over_time(0.95, {})",
    "highest": "max_over_time({})",
}


class Coverage(NamedTuple):
    """For how many seconds of a time each broker was scraped, by its label.

    A scrape stands for `interval` seconds. A broker that was never scraped is missing.
    """

    interval: float
    seconds: Mapping[str, float]


def read_use(
    server: Prometheus, source: UsageSource, broker: str, key: str, time: Time
) -> list[SeriesUse]:
    """Return the use of each series of a broker and a key; none if it is not exported.

    Raises UseUnknown if anything could not be read.
    """
    found = _read_statistics(server, source, broker, source.names.rates.get(key), time)
    return [SeriesUse(broker, names, **values) for names, values in found.items()]


def read_throttled(
    server: Prometheus, source: UsageSource, broker: str, key: str, time: Time
) -> set[SeriesNames]:
    """Return the series of a broker and a key that were throttled at all, as far as was scraped.

    Raises UseUnknown if it could not be read.
    """
    metric = source.names.throttle_times.get(key)
    if metric is None:
        return set()
    selector = source.select(metric, [f"{source.broker}={quote_text(broker)}"])
    # Without a throttle in the last minute the value is NaN, which max_over_time leaves out.
    query = f"max_over_time({selector}{format_range(*time)}) >= 0"
    try:
        return {read_names(source, series) for series in server.query(query, time.end)}
    except QueryTooLarge as error:
        return set().union(
            *(read_throttled(server, source, broker, key, part) for part in _halve(time, error))
        )


def _read_statistics(
    server: Prometheus, source: UsageSource, broker: str, metric: Metric | None, time: Time
) -> dict[SeriesNames, dict[str, float]]:
    found: dict[SeriesNames, dict[str, float]] = {}
    if metric is None:
        return found
    selector = source.select(metric, [f"{source.broker}={quote_text(broker)}"])
    try:
        for name, form in _STATISTICS.items():
            query = form.format(f"{selector}{format_range(*time)}")
            for series in server.query(query, time.end):
                value = float(series.value.value) if series.value else 0.0
                if not isnan(value):
                    values = found.setdefault(read_names(source, series), _nothing())
                    values[name] = max(values[name], value)
    except QueryTooLarge as error:
        found = {}
        for part in _halve(time, error):
            for names, values in _read_statistics(server, source, broker, metric, part).items():
                so_far = found.setdefault(names, _nothing())
                found[names] = {name: max(so_far[name], values[name]) for name in values}
    return found


def _halve(time: Time, error: QueryTooLarge) -> tuple[Time, Time]:
    """Return the halves of a time whose query was too large. Raises the error for a short time."""
    middle = time.start + (time.end - time.start) / 2
    if middle - time.start < _SHORTEST:
        raise error
    return Time(time.start, middle), Time(middle, time.end)


def _nothing() -> dict[str, float]:
    return dict.fromkeys(_STATISTICS, 0.0)


def read_coverage(server: Prometheus, source: UsageSource, time: Time) -> Coverage:
    """Return for how long each broker was scraped.

    A scrape stands for the seconds until the next: those of `step`, or fewer if there were more
    scrapes in the last hour.
    """
    up = source.select(UP)
    interval = min(float(source.step), read_interval(server, source, time.end) or source.step)
    summed = f"min by ({source.broker}) (sum_over_time({up}{format_range(*time)}))"
    window = (time.end - time.start).total_seconds()
    seconds = {
        series.metric.get(source.broker, ""): min(window, float(series.value.value) * interval)
        for series in server.query(summed, time.end)
        if series.value
    }
    return Coverage(interval, dict(sorted(seconds.items())))


def read_interval(server: Prometheus, source: UsageSource, at: datetime) -> float | None:
    """Return how many seconds pass between two scrapes of a broker; None if none is recent."""
    found = server.query(f"{source.select(UP)}[1h]", at)
    times = ([sample.time for sample in series.values] for series in found)
    gaps = [later - earlier for each in times for earlier, later in pairwise(each)]
    return median(gaps) if gaps else None
