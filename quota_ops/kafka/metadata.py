"""Reads the controllers' view of the brokers: the age of their metadata, and which are fenced.

The requests go through every broker in parallel.
"""

import math
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from kafka.errors import IncompatibleBrokerVersion

from quota_ops.kafka.client.broker_client import build_client
from quota_ops.kafka.client.description import Broker, ClusterDescription
from quota_ops.kafka.client.kafka_python import (
    DescribeClusterRequest,
    DescribeQuorumRequest,
    MetadataRequest,
)
from quota_ops.kafka.connection import Connection
from quota_ops.kafka.facts import map_nodes
from quota_ops.model.clusters.cluster_facts import Metadata, Registered
from quota_ops.model.plans.placement import PREFIX, matches_topic

_TOPIC = "__cluster_metadata"
_NOT_AVAILABLE = frozenset({31, 35})
"""CLUSTER_AUTHORIZATION_FAILED, UNSUPPORTED_VERSION."""


def read_metadata(
    connection: Connection, described: ClusterDescription, timeout: float
) -> Metadata:
    """Query the quorum through every broker; this needs DESCRIBE on the resource Cluster.

    Returns an empty Metadata when an address now leads to another cluster.

    A broker responds to DescribeCluster itself and forwards DescribeQuorum to the controller. The
    cluster has no controller if brokers respond to DescribeCluster, but not to DescribeQuorum
    within half of `timeout` (seconds) after that.
    """
    deadline = time.monotonic() + timeout
    first_response = math.inf
    brokers = described.endpoints
    client = build_client(connection, brokers, timeout)
    try:
        nodes = map_nodes(client, brokers)
        clusters = {
            broker.id: client.send(nodes[broker.id], build_cluster_request()) for broker in brokers
        }
        quorums = [client.send(nodes[broker.id], _build_quorum_request()) for broker in brokers]
        while not _is_complete(clusters.values(), quorums) and time.monotonic() < deadline:
            client.poll(timeout_ms=20)
            if any(cluster.succeeded() for cluster in clusters.values()):
                first_response = min(first_response, time.monotonic())
        waited = time.monotonic() - first_response
    finally:
        client.close()
    responses = {
        broker: response.value for broker, response in clusters.items() if response.succeeded()
    }
    if any(response.cluster_id != described.cluster_id for response in responses.values()):
        return Metadata()
    forwarded = [quorum.value for quorum in quorums if quorum.succeeded()]
    led = next(
        (response for response in map(_find_partition, forwarded) if response is not None), None
    )
    if led is None:
        is_unavailable = any(
            response.error_code in _NOT_AVAILABLE for response in forwarded
        ) or any(isinstance(quorum.exception, IncompatibleBrokerVersion) for quorum in quorums)
        unled = responses and (forwarded or waited >= timeout / 2) and not is_unavailable
        return Metadata(led=False if unled else None, answered=tuple(responses))
    observers = tuple(sorted(observer.replica_id for observer in led.observers))
    return Metadata(True, tuple(_list_ages(led)), observers, tuple(responses))


def _build_quorum_request() -> Any:
    return DescribeQuorumRequest(topics=[(_TOPIC, [(0,)])])


def _is_complete(clusters: Iterable[Any], quorums: Iterable[Any]) -> bool:
    """Return whether every broker has responded, and one forwarded the controller's response."""
    forwarded = any(quorum.succeeded() for quorum in quorums) or all(
        quorum.is_done for quorum in quorums
    )
    return forwarded and all(cluster.is_done for cluster in clusters)


def _find_partition(response: Any) -> Any:
    """Return the only partition of the metadata; None when no controller described it."""
    found = [
        partition
        for topic in response.topics
        for partition in topic.partitions
        if partition.error_code == 0
    ]
    return found[0] if found and found[0].leader_id >= 0 else None


def _list_ages(partition: Any) -> Iterator[tuple[int, float]]:
    """Yield each replica's id, and the seconds since it last had caught up with the leader."""
    replicas = (*partition.current_voters, *partition.observers)
    caught_up = {replica.replica_id: replica.last_caught_up_timestamp for replica in replicas}
    now = caught_up.get(partition.leader_id, 0)
    for node, then in sorted(caught_up.items()):
        if then > 0:
            yield node, round((now - then) / 1000, 1)


_NAMES_FENCED = 2
"""The version of DescribeCluster that lists fenced brokers: Apache Kafka 4.0 and later."""


def build_cluster_request() -> Any:
    """Build a DescribeCluster request, which every broker accepts from any authenticated client."""
    return DescribeClusterRequest(include_fenced_brokers=True)


def parse_registered(response: Any) -> tuple[Registered, ...] | None:
    """Return the registered brokers by id; None when the response cannot list fenced ones."""
    if response.error_code != 0 or response.version < _NAMES_FENCED:
        return None
    found = (
        Registered(
            broker.broker_id,
            Broker(broker.broker_id, broker.host, broker.port).address,
            broker.is_fenced,
        )
        for broker in response.brokers
    )
    return tuple(sorted(found))


def build_topics_request(names: Sequence[str]) -> Any:
    """Build a Metadata request for topics; a prefix among them requests every topic."""
    of_name = MetadataRequest.MetadataRequestTopic
    wanted = (
        None if any(name.endswith(PREFIX) for name in names) else [of_name(name=n) for n in names]
    )
    return MetadataRequest(topics=wanted, allow_auto_topic_creation=False)


def parse_leads(
    response: Any, names: Sequence[str], brokers: Collection[int]
) -> Mapping[int, list[str]]:
    """Return, for each broker, the topics with a partition whose preferred leader it is.

    That is the first replica, to which Kafka returns the lead when it is back
    (auto.leader.rebalance.enable), or the first one of `brokers` if that broker is not one of them.
    Topics that do not exist, or that quota-ops may not describe, are left out.
    """
    leads: dict[int, set[str]] = {}
    for topic in response.topics:
        if topic.error_code == 0 and any(matches_topic(name, topic.name) for name in names):
            for partition in topic.partitions:
                replicas = (broker for broker in partition.replica_nodes if broker in brokers)
                if (leader := next(replicas, None)) is not None:
                    leads.setdefault(leader, set()).add(topic.name)
    return {broker: sorted(topics) for broker, topics in leads.items()}
