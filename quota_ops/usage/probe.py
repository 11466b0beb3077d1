"""The series of a cluster in a Prometheus: which preset fits, and which rules lose names."""

from collections.abc import Callable
from datetime import UTC, datetime

from msgspec.structs import replace

from quota_ops.model.quotas.quota import MEASURED_KEYS
from quota_ops.model.usage.usage import Metric
from quota_ops.model.usage.use import KeyProbe, UseProbe
from quota_ops.usage.labels import quote_text
from quota_ops.usage.overview import read_interval
from quota_ops.usage.presets import PRESETS
from quota_ops.usage.prometheus import open_prometheus
from quota_ops.usage.samples import UP, find_broker
from quota_ops.usage.source import UsageSource

_MERGED = ("kafka_server_quota_byte_rate", 'resource=~".*, (user|client-id)=.*"')
"""What rules of the JMX exporter before 2023 make: `(.+)` takes the user into `resource`."""
_NAMED = "kafka_server_(produce|fetch|request)_(user|client_id)_.+"
"""What the rules of the JMX exporter's example for KRaft make: names of clients in metrics."""


def probe_usage(source: UsageSource, at: datetime) -> UseProbe:
    """Return the metrics of a cluster in the hour before a time. Raises UseUnknown like a query."""
    with open_prometheus(source.connection) as server:

        def read(expression: str) -> list[float]:
            return [each.value.value for each in server.query(expression, at) if each.value]

        def count(expression: str) -> int:
            return int(sum(read(f"count({expression})")))

        up = source.select(UP)
        states = server.query(f"min by ({source.broker}) (last_over_time({up}[1h]))", at)
        up_by_broker = {
            find_broker(source, series): series.value.value == 1
            for series in states
            if series.value
        }
        keys = [_probe_key(source, key, count) for key in MEASURED_KEYS]
        unnamed = [_select_unnamed(source, key.key) for key in keys if key.unnamed]
        examples = [server.query(f"topk(1, {each})", at) for each in unnamed[:1]]
        oldest = read(f"min(min_over_time(timestamp({up})[400d:1d]))")
        matchers = ",".join(f"{label}={quote_text(value)}" for label, value in source.match)
        named = f"{{__name__=~{quote_text(_NAMED)}{',' if matchers else ''}{matchers}}}"
        merged = source.select(Metric(_MERGED[0]), [_MERGED[1]])
        return UseProbe(
            up_by_broker,
            read_interval(server, source, at),
            # It was found at the midnight that ends the day.
            datetime.fromtimestamp(oldest[0] - 1, UTC) if oldest else None,
            keys,
            {
                preset: sum(
                    count(f"last_over_time({source.select(metric)}[1h])") > 0
                    for metric in names.rates.values()
                )
                for preset, names in PRESETS.items()
            },
            count(merged),
            count(f"count by (__name__) ({named})"),
            next((series.metric for found in examples for series in found), {}),
        )


def _probe_key(source: UsageSource, key: str, count: Callable[[str], int]) -> KeyProbe:
    metric = source.names.rates.get(key)
    if metric is None:
        return KeyProbe(key, 0, 0, 0, 0, is_exported=False)
    own = f"last_over_time({source.select(metric)}[1h])"
    everywhere = replace(source, match=()).select(metric)
    series = count(own)
    return KeyProbe(
        key,
        series,
        count(_select_unnamed(source, key)) if series else 0,
        count(f"count by ({source.broker}) ({own})"),
        count(f"last_over_time({everywhere}[1h])"),
        is_exported=True,
    )


def _select_unnamed(source: UsageSource, key: str) -> str:
    """Return the expression of the series of a key without names, in the last hour."""
    selector = source.select(source.names.rates[key], source.unnamed)
    return f"last_over_time({selector}[1h])"
