"""A source of samples, and samples as tables."""

from collections.abc import Callable, Collection, Iterable
from typing import NamedTuple, Self

import pyarrow as pa
from msgspec import Struct

from quota_ops.model.errors import InvalidInput
from quota_ops.model.plans.policy import Policy
from quota_ops.model.usage.series import SeriesNames
from quota_ops.model.usage.usage import Metric, UsagePolicy
from quota_ops.usage.connection import PrometheusConnection, find_prometheus
from quota_ops.usage.labels import quote_text
from quota_ops.usage.presets import MetricNames, find_names

SAMPLES = pa.schema(
    [
        pa.field("time", pa.timestamp("us", tz="UTC"), nullable=False),
        pa.field("broker", pa.string(), nullable=False),
        pa.field("key", pa.string(), nullable=False),
        pa.field("user_name", pa.string()),
        pa.field("client_id", pa.string()),
        pa.field("value", pa.float64(), nullable=False),
    ]
)
"""The use of an entity on one broker: names are Kafka's, null if the series has no such label.

`value` is in the unit of the quota key (bytes/s, percent of one thread, mutations/s), or in ms for
throttle times; it is never NaN.
"""
SCRAPES = pa.schema(
    [
        pa.field("time", pa.timestamp("us", tz="UTC"), nullable=False),
        pa.field("broker", pa.string(), nullable=False),
        pa.field("up", pa.bool_(), nullable=False),
    ]
)
"""Each scrape of a broker, and whether it succeeded."""


class Samples(NamedTuple):
    """Rates as in SAMPLES, and the scrapes of the same brokers and time as in SCRAPES.

    Where no scrape succeeded, or none is recorded, use is unknown. Where one did, an entity
    without a sample used nothing. `throttled` are the series that a broker throttled at all; it is
    empty for a key of which brokers count all use of a throttled client.
    """

    rates: pa.Table
    up: pa.Table
    throttled: Collection[SeriesNames] = ()


class UsageSource(Struct, frozen=True):
    """The Prometheus of one cluster, and the names of its metrics there."""

    connection: PrometheusConnection
    names: MetricNames
    match: tuple[tuple[str, str], ...]
    broker: str
    step: int
    """The interval of the scrapes, in seconds."""

    @classmethod
    def of(cls, policy: UsagePolicy, connection: PrometheusConnection) -> Self:
        """Return the source that cluster.yaml declares."""
        return cls(connection, find_names(policy), policy.match, policy.broker, policy.step)

    @property
    def unnamed(self) -> tuple[str, str]:
        """The matchers of series without names of clients."""
        return f'{self.names.user}=""', f'{self.names.client_id}=""'

    def select(self, metric: Metric, extra: Iterable[str] = ()) -> str:
        """Return the selector of a metric's series of this cluster, in PromQL."""
        labels = (*metric.labels, *self.match)
        matchers = [f"{label}={quote_text(value)}" for label, value in labels]
        return f"{metric.name}{{{','.join([*matchers, *extra])}}}"


def find_source(
    policy: Policy, find_use: Callable[[str], PrometheusConnection] = find_prometheus
) -> UsageSource:
    """Return where the use of a cluster is measured; `find_use` looks up the connection by name.

    Raises InvalidInput if cluster.yaml has no usage, and for an invalid connection.
    """
    if policy.usage is None:
        raise InvalidInput(
            f"cluster.yaml of {policy.cluster} has no usage: where use is measured is not known",
            "Add usage: {prometheus: NAME, match: {LABEL: VALUE}}, as the how-to page usage shows.",
        )
    return UsageSource.of(policy.usage, find_use(policy.usage.prometheus))
