"""Read the samples of a time from a Prometheus, as they were scraped.

A range selector returns samples with their own times. A range query would repeat the last one for
up to five minutes after a broker stopped.
"""

from collections.abc import Callable, Collection, Iterable, Iterator
from datetime import datetime, timedelta
from typing import NamedTuple

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
from quota_ops.usage.source import SAMPLES, SCRAPES, UsageSource

UP = Metric("up")
_SAMPLES_AT_ONCE = 150_000
"""About how many samples one table may have: 12 MB of JSON, if they are one response."""
_SHORTEST = timedelta(minutes=5)
"""The shortest time of a query; a server that refuses it is given up."""
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


def read_scrapes(source: UsageSource, brokers: Collection[str], time: Time) -> pa.Table:
    """Return SCRAPES of some brokers after the start of a time until its end; UseUnknown as above.

    They are sorted by broker and time.
    """
    tables = [SCRAPES.empty_table()]
    with open_prometheus(source.connection) as server:
        for broker in brokers:
            selector = source.select(UP, [f"{source.broker}={quote_text(broker)}"])
            found = [each for series in _query(server, selector, time) for each in series.values]
            found.sort(key=lambda sample: sample.time)
            ups = pa.array([sample.value == 1 for sample in found], pa.bool_())
            columns = [_list_times(found), pa.repeat(broker, len(found)), ups]
            tables.append(_after(time.start, pa.table(columns, schema=SCRAPES)))
    return pa.concat_tables(tables)


def read_rates(
    source: UsageSource,
    brokers: Collection[str],
    key: str,
    time: Time,
    *,
    selection: Selection = None,
) -> Iterator[pa.Table]:
    """Yield the use of a quota key on some brokers after the start of a time until its end.

    Each table of SAMPLES has all samples of some series of a broker. Raises UseUnknown if anything
    could not be read, possibly after some tables.
    """
    if (metric := source.names.rates.get(key)) is None:
        return
    samples = (time.end - time.start).total_seconds() / source.step
    at_once = max(1, min(_NAMES_AT_ONCE, int(_SAMPLES_AT_ONCE / samples)))
    with open_prometheus(source.connection) as server:
        for broker in brokers:
            series = _SeriesOf(server, source, broker, metric)
            labels = series.list_labels(time, selection)
            for at in range(0, len(labels), at_once):
                if (table := series.read(key, labels[at : at + at_once], time)).num_rows:
                    yield table


def find_throttled_series(
    source: UsageSource,
    brokers: Collection[str],
    key: str,
    time: Time,
    selection: Collection[SeriesNames],
) -> set[SeriesNames]:
    """Return which of some series were throttled at all on some brokers; UseUnknown as a query."""
    if (metric := source.names.throttle_times.get(key)) is None:
        return set()
    with open_prometheus(source.connection) as server:
        return {
            names
            for broker in brokers
            for selector in _SeriesOf(server, source, broker, metric).list_selectors(selection)
            for series in server.query(
                f"max_over_time({selector}{format_range(*time)}) > 0", time.end
            )
            if (names := read_names(source, series)) in selection
        }


class _Labels(NamedTuple):
    """The labels of a series that name its clients, as they are; "" is no label."""

    user: str
    client_id: str


class _SeriesOf(Struct, frozen=True):
    """The series of a broker and a metric."""

    server: Prometheus
    source: UsageSource
    broker: str
    metric: Metric

    def list_labels(self, time: Time, selection: Selection) -> list[_Labels]:
        """Return the labels of the series that have a sample in a time, sorted."""
        names = self.source.names
        by = f"count by ({names.user}, {names.client_id}) (last_over_time"
        found = {
            self._get_labels(series)
            for selector in self.list_selectors(selection)
            for series in self.server.query(f"{by}({selector}{format_range(*time)}))", time.end)
            if selection is None or read_names(self.source, series) in selection
        }
        return sorted(found)

    def read(self, key: str, labels: Collection[_Labels], time: Time) -> pa.Table:
        """Return the samples of the series with these labels."""
        selector = self._select(*(sorted({*texts}) for texts in zip(*labels, strict=True)))
        found = [
            (names, series.values)
            for series in _query(self.server, selector, time)
            if self._get_labels(series) in labels
            for names in [read_names(self.source, series)]
        ]
        numbers = pa.array(
            [number for number, (_, some) in enumerate(found) for _ in some], "int32"
        )
        users, client_ids = (
            pa.array([names[at] for names, _ in found], pa.string()).take(numbers) for at in (0, 1)
        )
        of_all = (pa.repeat(text, len(numbers)) for text in (self.broker, key))
        values = pa.array([sample.value for _, some in found for sample in some], pa.float64())
        times = _list_times(sample for _, some in found for sample in some)
        columns = [times, *of_all, users, client_ids, values]
        return _after(time.start, pa.table(columns, schema=SAMPLES))

    def list_selectors(self, selection: Selection) -> Iterator[str]:
        """Yield selectors of the series, and perhaps of more than the selection."""
        if selection is None:
            yield self._select()
            return
        names = sorted(selection, key=lambda each: (each.user or "", each.client_id or ""))
        for at in range(0, len(names), _NAMES_AT_ONCE):
            some = names[at : at + _NAMES_AT_ONCE]
            yield self._select(
                _list_forms((each.user for each in some), encode_user),
                _list_forms((each.client_id for each in some), encode_client_id),
            )

    def _select(self, *labels: Collection[str]) -> str:
        """Return the selector of the series whose user and client id have one of these labels."""
        names = self.source.names.user, self.source.names.client_id
        matchers = (match_any(name, texts) for name, texts in zip(names, labels, strict=False))
        of_broker = f"{self.source.broker}={quote_text(self.broker)}"
        return self.source.select(self.metric, [of_broker, *matchers])

    def _get_labels(self, series: Series) -> _Labels:
        names, labels = self.source.names, series.metric
        return _Labels(labels.get(names.user, ""), labels.get(names.client_id, ""))


def _query(server: Prometheus, selector: str, time: Time) -> Iterator[Series]:
    """Yield the series of a time, by shorter queries if the server refuses a longer one."""
    try:
        found = server.query(f"{selector}{format_range(*time)}", time.end)
    except QueryTooLarge:
        middle = time.start + (time.end - time.start) / 2
        if middle - time.start < _SHORTEST:
            raise
        yield from _query(server, selector, Time(time.start, middle))
        yield from _query(server, selector, Time(middle, time.end))
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


def _after(start: datetime, table: pa.Table) -> pa.Table:
    """Return the rows after a time, because some servers return a sample at it and some do not."""
    earliest = pa.scalar(round(start.timestamp() * 1000) * 1000, pa.int64()).cast(_TIME)
    return table.filter(pc.greater(table["time"], earliest))


def read_names(source: UsageSource, series: Series) -> SeriesNames:
    """Return the names of a series, decoded."""
    user = series.metric.get(source.names.user)
    client_id = series.metric.get(source.names.client_id)
    return SeriesNames(
        None if user is None else decode_user(user),
        None if client_id is None else decode_client_id(client_id),
    )
