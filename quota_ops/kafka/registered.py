"""The brokers that a cluster has registered, also those that no client is sent to (KIP-1073)."""

from typing import Any

from kafka.protocol.admin import DescribeClusterRequest

from quota_ops.kafka.client.description import Broker
from quota_ops.model.registration import Registered

_NAMES_FENCED = 2
"""The version of DescribeCluster that names fenced brokers: Apache Kafka 4.0 and later."""


def cluster_request() -> Any:
    """A DescribeCluster, which a broker answers by itself, and to everybody who may log in."""
    return DescribeClusterRequest(include_fenced_brokers=True)


def registered_brokers(response: Any) -> tuple[Registered, ...] | None:
    """The brokers in order of id; None where the response cannot have the fenced ones."""
    if response.error_code != 0 or response.version < _NAMES_FENCED:
        return None
    found = (
        Registered(one.broker_id, Broker(one.broker_id, one.host, one.port).address, one.is_fenced)
        for one in response.brokers
    )
    return tuple(sorted(found))
