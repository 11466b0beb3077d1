"""The use of every series in a time, by few queries: percentiles, the highest value, coverage.

Percentiles of parts cannot be merged. If a time has to be divided, the percentile of the busiest
part stands for the whole: it is never below that of the whole.
"""

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from functools import partial
from itertools import pairwise
from math import isnan, nan
from statistics import median
from typing import NamedTuple

from quota_ops.model.errors import UseUnknown
from quota_ops.model.usage.digest import LARGEST_RATE, UseRow
from quota_ops.model.usage.seen import SeenBrokers
from quota_ops.model.usage.series import SeriesNames, Time
from quota_ops.model.usage.usage import Metric
from quota_ops.usage.labels import quote_text
from quota_ops.usage.prometheus import Prometheus, QueryTooLarge, open_prometheus
from quota_ops.usage.samples import (
    UP,
    find_broker,
    format_range,
    list_brokers,
    read_names,
    read_scrapes,
)
from quota_ops.usage.scrapes import find_seen
from quota_ops.usage.source import UsageSource

_SHORTEST = timedelta(hours=1)
_COUNT = "count_over_time({})"
_STATISTICS = (
    "quantile_over_time(0.5, {})",
    "quantile_over_time(0.95, {})",
    "max_over_time({})",
    _COUNT,
)


_SeriesOf = tuple[str, Metric | None]
"""The series of a broker and a metric; none without a metric."""


class Coverage(NamedTuple):
    """When each broker was seen in a time, by its label, in seconds since 1970.

    Scrapes are `interval` seconds apart, and each stands for `step` seconds at most. A broker that
    was never scraped is missing.
    """

    interval: float
    step: int
    seen: SeenBrokers

    @property
    def counted(self) -> float:
        """For how many seconds a scrape stands."""
        return min(self.interval, float(self.step))


def read_use(
    server: Prometheus, source: UsageSource, broker: str, key: str, time: Time, *, interval: float
) -> list[UseRow]:
    """Return the use of each series of a broker and a key; none if it is not exported.

    `interval` is for how many seconds a sample stands. If the highest value is infinite, the p95
    stands for it: it is a lower bound. If some samples are no numbers, Prometheus counts them, too:
    Kafka's rates are numbers (an idle client has 0, and after an hour no series). The time at a
    limit, and whether a series was throttled, are not read. Raises UseUnknown if anything could not
    be read.
    """
    metric = source.names.rates.get(key)
    query = partial(_query, server, source, (broker, metric), time=time)
    with ThreadPoolExecutor(len(_STATISTICS)) as pool:  # a server uses one core for each query
        medians, p95s, highest, counts = pool.map(query, _STATISTICS)
    rows: list[UseRow] = []
    for names, value in highest.items():
        p50, p95 = (found.get(names, nan) for found in (medians, p95s))
        known = [each for each in (value, p95) if abs(each) < LARGEST_RATE]
        most, counted = (known[0], counts.get(names, 0.0) * interval) if known else (0.0, 0.0)
        # A percentile is NaN if most samples are: it is at most the highest then.
        p50, p95 = (most if isnan(each) else min(each, most) for each in (p50, p95))
        rows.append(UseRow(broker, key, *names, 0, counted, 0.0, 0.0, p50, p95, most, False))
    return rows


def read_throttled(
    server: Prometheus, source: UsageSource, broker: str, key: str, time: Time
) -> set[SeriesNames]:
    """Return the series of a broker and a key that were throttled at all, as far as was scraped.

    Raises UseUnknown if it could not be read.
    """
    metric = source.names.throttle_times.get(key)
    # Without a throttle in the last minute the value is NaN, and 0 after some exporters.
    return {*_query(server, source, (broker, metric), "max_over_time({}) > 0", time)}


def read_throttle_times(
    source: UsageSource, at: datetime, patience: float | None
) -> tuple[set[str], dict[tuple[str, SeriesNames], tuple[str, float]]]:
    """Return which brokers are up, and who was throttled in the minute before a time.

    By key and names: the broker where the mean delay is longest, and that delay in ms. Raises
    UseUnknown if it could not be read within `patience` seconds a query, or nothing is exported.
    """
    found: dict[tuple[str, SeriesNames], tuple[str, float]] = {}
    with open_prometheus(source.connection, patience=patience) as server:
        metrics = source.names.throttle_times
        selectors = {key: source.select(each) for key, each in metrics.items()}
        for key, metric in metrics.items():
            if server.query(f"count({source.select(metric, source.unnamed)})", at):
                raise UseUnknown(
                    f"some series of throttle times of {key} have no names of clients, so all of "
                    "them may be of others",
                    "Run usage --probe: it shows the labels that they have.",
                )
        for key, selector in selectors.items():  # NaN is a client that was not throttled
            for series in server.query(f"{selector} > 0", at):
                place = key, read_names(source, series)
                wait = series.value.value if series.value else 0.0
                if wait >= found.get(place, ("", -1.0))[1]:
                    found[place] = (series.metric.get(source.broker, ""), wait)
        if not found and not any(server.query(f"count({each})", at) for each in selectors.values()):
            raise UseUnknown("Prometheus has no throttle time of any client")
        up = server.query(f"{source.select(UP)} == 1", at)
        return {find_broker(source, series) for series in up}, found


def _query(
    server: Prometheus, source: UsageSource, series: _SeriesOf, form: str, time: Time
) -> dict[SeriesNames, float]:
    """Return the value of each series that has one.

    If the time is divided, it is the highest of the parts, or the sum of counts.
    """
    broker, metric = series
    if metric is None:
        return {}
    selector = source.select(metric, [f"{source.broker}={quote_text(broker)}"])
    try:
        found = server.query(form.format(f"{selector}{format_range(*time)}"), time.end)
        return {read_names(source, each): each.value.value for each in found if each.value}
    except QueryTooLarge:
        middle = time.start + (time.end - time.start) / 2
        if middle - time.start < _SHORTEST:
            raise
        joined: dict[SeriesNames, float] = {}
        for part in (Time(time.start, middle), Time(middle, time.end)):
            for names, value in _query(server, source, series, form, part).items():
                if form == _COUNT:
                    joined[names] = joined.get(names, 0.0) + value
                    continue
                both = (value, joined.get(names, value))
                joined[names] = max((each for each in both if not isnan(each)), default=value)
        return joined


def read_coverage(server: Prometheus, source: UsageSource, time: Time) -> Coverage:
    """Return when each broker was seen. Raises UseUnknown if it could not be read."""
    interval = read_interval(server, source, time.end) or float(source.step)
    scrapes = read_scrapes(source, list_brokers(source, *time), time)
    return Coverage(interval, source.step, find_seen(scrapes, source.step, time))


def read_interval(server: Prometheus, source: UsageSource, at: datetime) -> float | None:
    """Return how many seconds pass between two scrapes of a broker; None if none is recent."""
    found = server.query(f"{source.select(UP)}[1h]", at)
    return find_interval([sample.time for sample in series.values] for series in found)


def find_interval(times: Iterable[Sequence[float]]) -> float | None:
    """Return the median gap between the scrapes of a broker, in seconds; None without two."""
    gaps = [later - earlier for each in times for earlier, later in pairwise(each)]
    return median(gaps) if gaps else None
