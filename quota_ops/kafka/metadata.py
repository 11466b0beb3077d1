"""What the controllers say of the brokers, asked through every broker at once."""

import math
import time
from collections.abc import Iterable, Iterator
from typing import Any

from kafka.errors import IncompatibleBrokerVersion

from quota_ops.kafka.client.broker_client import net_client
from quota_ops.kafka.client.description import Broker, ClusterDescription
from quota_ops.kafka.client.kafka_python import DescribeClusterRequest, DescribeQuorumRequest
from quota_ops.kafka.connection import Connection
from quota_ops.kafka.facts import nodes_of
from quota_ops.model.metadata import Metadata
from quota_ops.model.registration import Registered

_TOPIC = "__cluster_metadata"
_NOT_TOLD = frozenset({31, 35})
"""CLUSTER_AUTHORIZATION_FAILED, UNSUPPORTED_VERSION."""


def read_metadata(
    connection: Connection, described: ClusterDescription, timeout: float
) -> Metadata:
    """Ask through every broker; the login needs DESCRIBE on the resource Cluster.

    Where an address leads to another cluster by now, nothing is known.

    A broker answers DescribeCluster by itself and passes DescribeQuorum on to the controller, so
    where the first alone is answered, and the other had half of `timeout` (seconds) since, there
    is no controller.
    """
    deadline = time.monotonic() + timeout
    first_answer = math.inf
    brokers = described.asked
    client = net_client(connection, brokers, timeout)
    try:
        nodes = nodes_of(client, brokers)
        clusters = {one.id: client.send(nodes[one.id], cluster_request()) for one in brokers}
        quorums = [client.send(nodes[one.id], _quorum()) for one in brokers]
        while not _told(clusters.values(), quorums) and time.monotonic() < deadline:
            client.poll(timeout_ms=20)
            if any(one.succeeded() for one in clusters.values()):
                first_answer = min(first_answer, time.monotonic())
        waited = time.monotonic() - first_answer
    finally:
        client.close()
    answers = {broker: one.value for broker, one in clusters.items() if one.succeeded()}
    if any(one.cluster_id != described.cluster_id for one in answers.values()):
        return Metadata()
    said = [one.value for one in quorums if one.succeeded()]
    led = next((one for one in map(_partition, said) if one is not None), None)
    if led is None:
        may_not_know = any(one.error_code in _NOT_TOLD for one in said) or any(
            isinstance(one.exception, IncompatibleBrokerVersion) for one in quorums
        )
        unled = answers and (said or waited >= timeout / 2) and not may_not_know
        return Metadata(led=False if unled else None, answered=tuple(answers))
    observers = tuple(sorted(one.replica_id for one in led.observers))
    return Metadata(True, tuple(_seconds(led)), observers, tuple(answers))


def _quorum() -> Any:
    return DescribeQuorumRequest(topics=[(_TOPIC, [(0,)])])


def _told(clusters: Iterable[Any], quorums: Iterable[Any]) -> bool:
    """Whether one broker has passed on what the controller says, and each has spoken for itself."""
    passed_on = any(one.succeeded() for one in quorums) or all(one.is_done for one in quorums)
    return passed_on and all(one.is_done for one in clusters)


def _partition(answer: Any) -> Any:
    """The one partition of the metadata, None where a controller did not describe it."""
    found = [one for topic in answer.topics for one in topic.partitions if one.error_code == 0]
    return found[0] if found and found[0].leader_id >= 0 else None


def _seconds(partition: Any) -> Iterator[tuple[int, float]]:
    """How long ago each replica that the leader knows had all that the leader had."""
    replicas = (*partition.current_voters, *partition.observers)
    caught_up = {one.replica_id: one.last_caught_up_timestamp for one in replicas}
    now = caught_up.get(partition.leader_id, 0)
    for node, then in sorted(caught_up.items()):
        if then > 0:
            yield node, round((now - then) / 1000, 1)


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
