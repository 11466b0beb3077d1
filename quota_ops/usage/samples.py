"""Read the samples of a time from a Prometheus, as they were scraped.

A range selector returns samples with their own times. A range query would repeat the last one for
up to five minutes after a broker stopped.
"""

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from math import isfinite

import pyarrow as pa

from quota_ops.model.usage.series import SeriesNames
from quota_ops.model.usage.usage import Metric
from quota_ops.usage.labels import (
    decode_client_id,
    decode_user,
    encode_client_id,
    encode_user,
    match_any,
    quote_text,
)
from quota_ops.usage.prometheus import Prometheus, QueryTooLarge, Series, open_prometheus
from quota_ops.usage.source import SAMPLES, SCRAPES, Samples, UsageSource

UP = Metric("up")
_SAMPLES_AT_ONCE = 150_000
"""About how many samples one part may have: 12 MB of JSON, if they are one response."""
_SHORTEST = timedelta(minutes=5)
"""The shortest time of a query; a server that refuses it is given up."""
_LONGEST = timedelta(days=1)
_NAMES_AT_ONCE = 40
"""The names in one selector, which is a regular expression."""
_TEXTS = ("broker", "key", "user_name", "client_id")
Selection = Collection[SeriesNames] | None
"""The names of the wanted series; None is all."""


def list_brokers(source: UsageSource, start: datetime, end: datetime) -> tuple[str, ...]:
    """Return the brokers that were scraped in a time, by their label; UseUnknown as a query."""
    scrapes = f"count_over_time({source.select(UP)}{format_range(start, end)})"
    with open_prometheus(source.connection) as server:
        found = server.query(f"count by ({source.broker}) ({scrapes})", end)
    return tuple(sorted(series.metric.get(source.broker, "") for series in found))


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


@dataclass(frozen=True)
class _SeriesOf:
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
                        client_ids,
                        _list_forms((each.client_id for each in part), encode_client_id),
                    ),
                ],
            )
            for part in parts
        ]

    def divide(self, start: datetime, end: datetime) -> Iterator[tuple[datetime, datetime]]:
        """Yield parts of a time of which all samples are few enough for one table."""
        total = 1
        for selector in self.selectors:
            counting = f"count(last_over_time({selector}{format_range(start, end)}))"
            found = self.server.query(counting, end)
            total += sum(int(float(series.value.value)) for series in found if series.value)
        seconds = int(_SAMPLES_AT_ONCE / total * self.source.step)
        longest = min(_LONGEST, max(_SHORTEST, timedelta(seconds=seconds)))
        count_of_parts = max(1, -((start - end) // longest))
        yield from pairwise([*(start + longest * each for each in range(count_of_parts)), end])

    def read(self, start: datetime, end: datetime) -> pa.Table:
        """Return the samples after `start` until `end`."""
        first = _micros(start.timestamp())
        columns: dict[str, list[object]] = {name: [] for name in SAMPLES.names}
        for selector in self.selectors:
            for series in self._query(selector, start, end):
                names = read_names(self.source, series)
                if self.selection is not None and names not in self.selection:
                    continue
                values = [(_micros(sample.time), float(sample.value)) for sample in series.values]
                kept = [(at, value) for at, value in values if at > first and isfinite(value)]
                columns["time"] += [at for at, _ in kept]
                columns["value"] += [value for _, value in kept]
                texts = dict(zip(_TEXTS, (self.broker, self.key, *names), strict=True))
                for name, text in texts.items():
                    columns[name] += [text] * len(kept)
        times = pa.array(columns.pop("time"), pa.int64()).cast(SAMPLES.field("time").type)
        return pa.table({"time": times, **columns}, schema=SAMPLES)

    def read_scrapes(self, start: datetime, end: datetime) -> pa.Table:
        """Return the scrapes of the broker after `start` until `end`."""
        first = _micros(start.timestamp())
        selector = self.source.select(UP, [f"{self.source.broker}={quote_text(self.broker)}"])
        found = sorted(
            (at, sample.value == "1")
            for series in self._query(selector, start, end)
            for sample in series.values
            if (at := _micros(sample.time)) > first
        )
        times = pa.array([at for at, _ in found], pa.int64()).cast(SCRAPES.field("time").type)
        brokers = [self.broker] * len(found)
        return pa.table([times, brokers, [up for _, up in found]], schema=SCRAPES)

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


def _micros(seconds: float) -> int:
    """Return the microseconds of a time in seconds, which has milliseconds."""
    return round(seconds * 1000) * 1000


def read_names(source: UsageSource, series: Series) -> SeriesNames:
    """Return the names of a series, decoded."""
    user = series.metric.get(source.names.user)
    client_id = series.metric.get(source.names.client_id)
    return SeriesNames(
        None if user is None else decode_user(user),
        None if client_id is None else decode_client_id(client_id),
    )
