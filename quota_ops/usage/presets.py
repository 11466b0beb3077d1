"""The names that exporters give to the measurements of clients on a broker.

Sources: the rules in the repositories jmx_exporter and jmx-monitoring-stacks; DefaultQuotaCallback
and ClientQuotaManager, which make the metrics' tags; Sanitizer, which encodes them.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from quota_ops.model.quotas.entity import CLIENT_ID, USER
from quota_ops.model.quotas.quota import QUOTA_KEYS
from quota_ops.model.usage.usage import Metric, Preset, UsagePolicy

RESOURCES = {key.name: key.measured for key in QUOTA_KEYS.values() if key.measured}
"""The `type` of a broker's MBeans for each quota key, and the attribute that is limited."""
_THROTTLE_TIME = "throttle_time"


class MetricNames(NamedTuple):
    """The metrics of use and of throttle times by quota key, and the labels of names.

    A key that is not exported is missing.
    """

    rates: Mapping[str, Metric]
    throttle_times: Mapping[str, Metric]
    user: str
    client_id: str
    is_quoted: bool = True
    """Whether client ids have JMX's quotes, where they need them."""


def _name(form: str, client_id: str, keys: Iterable[str] = RESOURCES) -> MetricNames:
    """Return the names of a preset by the form of its metrics, as cluster.yaml writes them."""

    def metric(key: str, attribute: str) -> Metric:
        resource = RESOURCES[key].resource
        names = {"resource": resource, "lower": resource.lower(), "attribute": attribute}
        return Metric.parse(form.format_map(names))

    return MetricNames(
        {key: metric(key, RESOURCES[key].attribute) for key in keys},
        {key: metric(key, _THROTTLE_TIME) for key in keys},
        "user",
        client_id,
    )


_OF_BROKERS = [key for key in RESOURCES if not QUOTA_KEYS[key].by_controller]
PRESETS: Mapping[Preset, MetricNames] = {
    Preset.JMX_EXPORTER: _name(
        'kafka_server_quota_{attribute}{{resource="{resource}"}}', "clientId"
    ),
    # Its rules leave out ControllerMutation.
    Preset.CONFLUENT: _name("kafka_server_{lower}_{attribute}", "client_id", _OF_BROKERS),
    Preset.DEFAULT: _name("kafka_server_{resource}_{attribute}", "client_id"),
    Preset.STRIMZI_REPORTER: _name("kafka_server_{lower}_{attribute}", "client_id")._replace(
        is_quoted=False
    ),
}


def find_names(policy: UsagePolicy) -> MetricNames:
    """Return the names of a preset, with those that cluster.yaml sets in their place."""
    preset, labels = PRESETS[policy.preset], dict(policy.labels)
    return MetricNames(
        {**preset.rates, **dict(policy.metrics)},
        {**preset.throttle_times, **dict(policy.throttle_times)},
        labels.get(USER, preset.user),
        labels.get(CLIENT_ID, preset.client_id),
        preset.is_quoted,
    )
