"""What the brokers say besides quotas, all of them asked at once, under one short deadline."""

import time
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from quota_ops.kafka.client.broker_client import net_client
from quota_ops.kafka.client.description import Broker, ClusterDescription
from quota_ops.kafka.client.kafka_python import (
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    ACLResourceType,
    ApiVersionsRequest,
    DescribeAclsRequest,
    DescribeConfigsRequest,
    DescribeUserScramCredentialsRequest,
)
from quota_ops.kafka.connection import Connection
from quota_ops.model.cluster_facts import BrokerFacts, ClusterFacts
from quota_ops.model.verification import BOOTSTRAP

Answers = Mapping[tuple[int, str], Any]
"""Responses by the broker's id and the name of what was asked; none of who did not answer."""

_BROKER = 4
"""ConfigResource.Type.BROKER"""
ZOOKEEPER = "zookeeper.connect"
_CONFIGS = (
    "client.quota.callback.class",
    "num.network.threads",
    "num.io.threads",
    "inter.broker.protocol.version",
    ZOOKEEPER,
)
_LARGEST = 4 * 2**20
"""Bytes: some 150,000 ACLs, a quarter of a second. To read more would keep a person waiting."""
_EVERY_ACL = {
    "resource_type_filter": ACLResourceType.ANY,
    "resource_name_filter": None,
    "pattern_type_filter": ACLResourcePatternType.ANY,
    "principal_filter": None,
    "host_filter": None,
    "operation": ACLOperation.ANY,
    "permission_type": ACLPermissionType.ANY,
}

METADATA_VERSION = "metadata.version"
"""The feature whose levels tell releases apart."""
_RELEASES = (
    (7, "3.3"),
    (8, "3.4"),
    (11, "3.5"),
    (14, "3.6"),
    (19, "3.7"),
    (20, "3.8"),
    (21, "3.9"),
    (25, "4.0"),
    (27, "4.1"),
    (29, "4.2"),
    (30, "4.3"),
    (33, "4.4"),
)
"""The highest metadata.version of each release. Source: org.apache.kafka.server.common.
MetadataVersion of 4.4."""


def read_facts(connection: Connection, cluster: ClusterDescription, timeout: float) -> ClusterFacts:
    """Ask whom calls go to, and one of them for the users too; what is not told in time is None.

    `timeout` is in seconds, for all of it.
    """
    deadline = time.monotonic() + timeout
    client = net_client(connection, cluster.asked, timeout, largest=_LARGEST)
    try:
        answers = _answers(client, cluster, deadline)
    finally:
        client.close()
    first = cluster.asked[0].id
    told = {speaker(answers.get((BOOTSTRAP, "configs"))): BOOTSTRAP} if cluster.bootstrap else {}
    return ClusterFacts(
        tuple(
            broker_facts(one, answers.get((at, "versions")), answers.get((at, "configs")))
            for one in cluster.brokers
            for at in (told.get(one.id, one.id),)
        ),
        connection.principal,
        _scram_users(answers.get((first, "users"))),
        _acl_principals(answers.get((first, "acls"))),
        connection.properties["client.id"],
    )


def _answers(client: Any, cluster: ClusterDescription, deadline: float) -> Answers:
    nodes, first = nodes_of(client, cluster.asked), cluster.asked[0].id
    asked = {
        (broker.id, name): client.send(nodes[broker.id], request)
        for broker in cluster.asked
        for name, request in _requests(cluster, broker, first=broker.id == first)
    }
    _wait(client, asked.values(), deadline)
    # Too long an answer costs the connection, and with it whatever else came at the same time.
    asked[first, "acls"] = client.send(nodes[first], DescribeAclsRequest(**_EVERY_ACL))
    _wait(client, [asked[first, "acls"]], deadline)
    return {one: future.value for one, future in asked.items() if future.succeeded()}


def _wait(client: Any, futures: Iterable[Any], deadline: float) -> None:
    for future in futures:
        left = max(0.0, deadline - time.monotonic())
        client.poll(timeout_ms=left * 1000, future=future)


def nodes_of(client: Any, brokers: Sequence[Broker]) -> dict[int, str]:
    """The name by which a client knows each broker, by the broker's id."""
    names = {(one.host, one.port): one.node_id for one in client.cluster.bootstrap_brokers()}
    return {one.id: names[one.host, one.port] for one in brokers}


def _requests(
    cluster: ClusterDescription, broker: Broker, *, first: bool
) -> Iterator[tuple[str, Any]]:
    """What a broker is asked at once."""
    yield "configs", configs_request(cluster, broker)
    yield "versions", versions_request()
    if first:
        # Empty is everybody. So is null, but a broker that refuses null fails and never answers.
        yield "users", DescribeUserScramCredentialsRequest(users=[])


def versions_request() -> Any:
    """An ApiVersions, which tells the release; a broker wants a client's name in it (KIP-511)."""
    return ApiVersionsRequest(client_software_name="quota-ops", client_software_version="unknown")


def configs_request(cluster: ClusterDescription, broker: Broker) -> Any:
    """A DescribeConfigs of a broker, which no other broker answers.

    At the bootstrap address it is one of each broker, of which the one that is there answers.
    """
    meant = cluster.brokers if broker.id == BOOTSTRAP else (broker,)
    return DescribeConfigsRequest(
        resources=[(_BROKER, str(one.id), list(_CONFIGS)) for one in meant]
    )


def speaker(configs: Any) -> int:
    """The id of the broker that answered a `configs_request`; BOOTSTRAP when that cannot be told.

    Source: ConfigHelper, which refuses another broker's id.
    """
    told = [one for one in configs.results if one.error_code == 0] if configs else []
    return int(told[0].resource_name) if len(told) == 1 else BOOTSTRAP


def config_values(configs: Any) -> dict[str, str]:
    """What a broker answered to `configs_request`; empty when it refused, or did not answer."""
    told = [one for one in configs.results if one.error_code == 0] if configs else []
    return {one.name: one.value or "" for one in told[0].configs} if len(told) == 1 else {}


def broker_facts(broker: Broker, versions: Any, configs: Any) -> BrokerFacts:
    """What a broker's two answers tell; None stands for an answer that did not come."""
    callback_class, network_threads, io_threads, protocol, _ = map(
        config_values(configs).get, _CONFIGS
    )
    return BrokerFacts(
        broker.id,
        broker.address,
        _release(versions) or _release_by_protocol(protocol),
        callback_class,
        _number(network_threads),
        _number(io_threads),
    )


def _release(versions: Any) -> str | None:
    """The release line of a KRaft broker by the metadata.version that it could speak."""
    for feature in versions.supported_features if versions else ():
        if feature.name == METADATA_VERSION:
            at = bisect_left(_RELEASES, (feature.max_version, ""))
            return _RELEASES[at][1] if at < len(_RELEASES) else f"after {_RELEASES[-1][1]}"
    return None


def _release_by_protocol(protocol: str | None) -> str | None:
    """The oldest release that a ZooKeeper broker can be, by the protocol `3.9-IV0`."""
    return protocol.partition("-")[0] or None if protocol else None


def _number(value: str | None) -> int | None:
    return int(value) if value and value.isdecimal() else None


def _scram_users(answer: Any) -> frozenset[str] | None:
    if answer is None or answer.error_code != 0:
        return None
    return frozenset(one.user for one in answer.results)


def _acl_principals(answer: Any) -> frozenset[str] | None:
    if answer is None or answer.error_code != 0:
        return None
    return frozenset(acl.principal for one in answer.resources for acl in one.acls)
