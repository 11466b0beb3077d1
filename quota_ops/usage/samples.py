"""Read the samples of a time from a Prometheus, as they were scraped.

A range selector returns samples with their own times. A range query would repeat the last one for
up to five minutes after a broker stopped.
"""

from collections.abc import Callable, Collection, Iterable, Iterator
from datetime import datetime, timedelta
from itertools import pairwise

import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct

from quota_ops.model.errors import UseUnknown
from quota_ops.model.usage.series import SeriesNames, Time
from quota_ops.model.usage.usage import Metric
from quota_ops.usage.labels import (
    decode_client_id,
    decode_user,
    encode_client_id,
    encode_user,
    match_any,
    quote_text,
)
from quota_ops.usage.prometheus import Prometheus, QueryTooLarge, Sample, Series, open_prometheus
from quota_ops.usage.source import SAMPLES, SCRAPES, Samples, UsageSource

UP = Metric("up")
_SAMPLES_AT_ONCE = 150_000
"""About how many samples one part may have: 12 MB of JSON, if they are one response."""
_SHORTEST = timedelta(minutes=5)
"""The shortest time of a query; a server that refuses it is given up."""
_LONGEST = timedelta(days=7)
"""The longest time of a query: what a review reads of some clients."""
_NAMES_AT_ONCE = 40
"""The names in one selector, which is a regular expression."""
_TIME = SAMPLES.field("time").type
Selection = Collection[SeriesNames] | None
"""The names of the wanted series; None is all."""


def list_brokers(source: UsageSource, start: datetime, end: datetime) -> tuple[str, ...]:
    """Return the brokers that were scraped in a time, by their label; UseUnknown as a query."""
    scrapes = f"count_over_time({source.select(UP)}{format_range(start, end)})"
    with open_prometheus(source.connection) as server:
        found = server.query(f"count by ({source.broker}) ({scrapes})", end)
    return tuple(sorted(find_broker(source, series) for series in found))


def read_scrapes(source: UsageSource, brokers: Collection[str], time: Time) -> pa.Table:
    """Return SCRAPES of some brokers. Raises UseUnknown if they cannot be read."""
    return join_samples(read_parts(source, brokers, "", *time, selection=())).up


def has_unnamed(source: UsageSource, key: str, time: Time) -> bool:
    """Return whether series of a key have no names of clients; UseUnknown as a query."""
    if (metric := source.names.rates.get(key)) is None:
        return False
    with open_prometheus(source.connection) as server:
        selector = f"{source.select(metric, source.unnamed)}{format_range(*time)}"
        return bool(server.query(f"count(max_over_time({selector}) > 0)", time.end))


def find_broker(source: UsageSource, series: Series) -> str:
    """Return the broker that a series is of. Raises UseUnknown if it has no such label."""
    broker = series.metric.get(source.broker)
    if broker is None:
        raise UseUnknown(
            f"the scrapes of this cluster have no label {source.broker} that tells brokers apart",
            "Set `broker` under `usage` in cluster.yaml to the label that differs between brokers.",
        )
    return broker


def join_samples(parts: Iterable[Samples]) -> Samples:
    """Return the samples of some parts together. Raises UseUnknown if one cannot be read."""
    some = list(parts)
    return Samples(
        pa.concat_tables([SAMPLES.empty_table(), *(part.rates for part in some)]),
        pa.concat_tables([SCRAPES.empty_table(), *(part.up for part in some)]),
    )


def read_parts(
    source: UsageSource,
    brokers: Collection[str],
    key: str,
    start: datetime,
    end: datetime,
    *,
    selection: Selection = None,
) -> Iterator[Samples]:
    """Yield the use of a quota key on some brokers after `start` until `end`.

    Parts have a bounded size, broker by broker, each in the order of time. Raises UseUnknown if
    anything could not be read, possibly after some parts.
    """
    with open_prometheus(source.connection) as server:
        for broker in brokers:
            series = _SeriesOf(server, source, broker, key, source.names.rates.get(key), selection)
            for since, until in series.divide(start, end):
                yield Samples(series.read(since, until), series.read_scrapes(since, until))


class _SeriesOf(Struct, frozen=True):
    """The series of a broker and a quota key; none without a metric."""

    server: Prometheus
    source: UsageSource
    broker: str
    key: str
    metric: Metric | None
    selection: Selection

    @property
    def selectors(self) -> list[str]:
        """Selectors of the series, and perhaps of more than the selection."""
        if self.metric is None:
            return []
        of_broker = f"{self.source.broker}={quote_text(self.broker)}"
        if self.selection is None:
            return [self.source.select(self.metric, [of_broker])]
        names = sorted(self.selection, key=lambda each: (each.user or "", each.client_id or ""))
        parts = [names[at : at + _NAMES_AT_ONCE] for at in range(0, len(names), _NAMES_AT_ONCE)]
        users, client_ids = self.source.names.user, self.source.names.client_id
        return [
            self.source.select(
                self.metric,
                [
                    of_broker,
                    match_any(users, _list_forms((each.user for each in part), encode_user)),
                    match_any(
                        client_ids, _list_forms((each.client_id for each in part), encode_client_id)
                    ),
                ],
            )
            for part in parts
        ]

    def divide(self, start: datetime, end: datetime) -> Iterator[tuple[datetime, datetime]]:
        """Yield parts of a period, each with few enough samples for one table."""
        total = 1
        for selector in self.selectors:
            counting = f"count(last_over_time({selector}{format_range(start, end)}))"
            found = self.server.query(counting, end)
            total += sum(int(series.value.value) for series in found if series.value)
        seconds = int(_SAMPLES_AT_ONCE / total * self.source.step)
        longest = min(_LONGEST, max(_SHORTEST, timedelta(seconds=seconds)))
        count_of_parts = max(1, -((start - end) // longest))
        yield from pairwise([*(start + longest * each for each in range(count_of_parts)), end])

    def read(self, start: datetime, end: datetime) -> pa.Table:
        """Return the samples after `start` until `end`."""
        found = [
            (names, series.values)
            for selector in self.selectors
            for series in self._query(selector, start, end)
            for names in [read_names(self.source, series)]
            if self.selection is None or names in self.selection
        ]
        numbers = pa.array(
            [number for number, (_, some) in enumerate(found) for _ in some], "int32"
        )
        users, client_ids = (
            pa.array([names[at] for names, _ in found], pa.string()).take(numbers) for at in (0, 1)
        )
        of_all = (pa.repeat(text, len(numbers)) for text in (self.broker, self.key))
        values = pa.array([sample.value for _, some in found for sample in some], pa.float64())
        times = _list_times(sample for _, some in found for sample in some)
        table = pa.table([times, *of_all, users, client_ids, values], schema=SAMPLES)
        return table.filter(pc.greater(times, _to_time(start)))

    def read_scrapes(self, start: datetime, end: datetime) -> pa.Table:
        """Return the scrapes of the broker after `start` until `end`."""
        selector = self.source.select(UP, [f"{self.source.broker}={quote_text(self.broker)}"])
        found = [each for series in self._query(selector, start, end) for each in series.values]
        found.sort(key=lambda sample: sample.time)
        brokers, times = pa.repeat(self.broker, len(found)), _list_times(found)
        ups = pa.array([sample.value == 1 for sample in found], pa.bool_())
        table = pa.table([times, brokers, ups], schema=SCRAPES)
        return table.filter(pc.greater(times, _to_time(start)))

    def _query(self, selector: str, start: datetime, end: datetime) -> Iterator[Series]:
        """Yield the series of a time, by shorter queries if the server refuses a longer one."""
        try:
            found = self.server.query(f"{selector}{format_range(start, end)}", end)
        except QueryTooLarge:
            middle = start + (end - start) / 2
            if middle - start < _SHORTEST:
                raise
            yield from self._query(selector, start, middle)
            yield from self._query(selector, middle, end)
        else:
            yield from found


def _list_forms(names: Iterable[str | None], encode: Callable[[str], str]) -> list[str]:
    """Return the labels that names may have: not every exporter passes on JMX's quotes."""
    return sorted({"" if name is None else form(name) for name in names for form in (encode, str)})


def format_range(start: datetime, end: datetime) -> str:
    """Return the range of a selector that reaches back from `end` to `start`."""
    return f"[{(end - start) // timedelta(milliseconds=1)}ms]"


def _list_times(samples: Iterable[Sample]) -> pa.Array:
    """Return the times of samples, which have milliseconds."""
    seconds = pa.array([sample.time for sample in samples], pa.float64())
    millis = pc.round(pc.multiply(seconds, 1000.0)).cast(pa.int64())
    return pc.multiply(millis, 1000).cast(_TIME)


def _to_time(moment: datetime) -> pa.Scalar:
    return pa.scalar(round(moment.timestamp() * 1000) * 1000, pa.int64()).cast(_TIME)


def read_names(source: UsageSource, series: Series) -> SeriesNames:
    """Return the names of a series, decoded."""
    user = series.metric.get(source.names.user)
    client_id = series.metric.get(source.names.client_id)
    return SeriesNames(
        None if user is None else decode_user(user),
        None if client_id is None else decode_client_id(client_id),
    )
