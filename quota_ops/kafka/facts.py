"""Reads the brokers' releases, settings, users and ACLs in parallel, under one short deadline."""

import time
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from quota_ops.kafka.client import kafka_python
from quota_ops.kafka.client.broker_client import TIMEOUTS, build_client
from quota_ops.kafka.client.description import Broker, ClusterDescription
from quota_ops.kafka.connection import Connection
from quota_ops.model.clusters.cluster_facts import BrokerFacts, ClusterFacts
from quota_ops.model.runs.verification import BOOTSTRAP

Responses = Mapping[tuple[int, str], Any]
"""The responses that arrived, by the broker's id and the name of the request."""

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
_UNAUTHORIZED = 31
"""CLUSTER_AUTHORIZATION_FAILED. A cluster without an authorizer responds to a query of ACLs with
SECURITY_DISABLED (54). Source: AclApis and KafkaApis."""
_LARGEST = 4 * 2**20
"""Bytes: about 150,000 ACLs in a quarter of a second. Reading more would delay the command."""
EVERY_ACL = {
    "resource_type_filter": kafka_python.ACLResourceType.ANY,
    "resource_name_filter": None,
    "pattern_type_filter": kafka_python.ACLResourcePatternType.ANY,
    "principal_filter": None,
    "host_filter": None,
    "operation": kafka_python.ACLOperation.ANY,
    "permission_type": kafka_python.ACLPermissionType.ANY,
}

METADATA_VERSION = "metadata.version"
"""The feature whose level reveals the release."""
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
    """Read the facts of every endpoint, and the users and ACLs from the first one that responds.

    A fact that does not arrive within `timeout` seconds is None; `late` and `late_users` name it.
    """
    deadline = time.monotonic() + timeout
    client = build_client(connection, cluster.endpoints, timeout, largest=_LARGEST)
    try:
        responses, late, responder = _send_requests(client, cluster, deadline)
    finally:
        client.close()
    aliases: dict[int, int] = {}
    users, acls = responses.get((responder, "users")), responses.get((responder, "acls"))
    if cluster.bootstrap:
        aliases = {find_responder(responses.get((BOOTSTRAP, "configs"))): BOOTSTRAP}
    return ClusterFacts(
        tuple(
            parse_broker_facts(
                broker, responses.get((at, "versions")), responses.get((at, "configs"))
            )
            for broker in cluster.brokers
            for at in (aliases.get(broker.id, broker.id),)
        ),
        connection.principal,
        _parse_users(users),
        _parse_principals(acls),
        connection.properties["client.id"],
        any(
            response is not None and response.error_code == _UNAUTHORIZED
            for response in (users, acls)
        ),
        tuple(
            broker.id
            for broker in cluster.brokers
            if (aliases.get(broker.id, broker.id), "configs") in late
        ),
        not late.isdisjoint({(responder, "users"), (responder, "acls")}),
    )


def make_late_facts(connection: Connection, cluster: ClusterDescription) -> ClusterFacts:
    """Return the facts of a query that ended without a result: all of them are late."""
    return ClusterFacts(
        tuple(BrokerFacts(broker.id, broker.address) for broker in cluster.brokers),
        connection.principal,
        client_id=connection.properties["client.id"],
        late=tuple(broker.id for broker in cluster.brokers),
        late_users=True,
    )


def _send_requests(
    client: Any, cluster: ClusterDescription, deadline: float
) -> tuple[Responses, set[tuple[int, str]], int]:
    """Return the responses, the requests without one in time, and the broker that was queried.

    The third value is the broker whose users and ACLs were requested: the first one, or, if it is
    silent for half of the time, another one. A list of ACLs that is too large is not late.
    """
    nodes, first = map_nodes(client, cluster.endpoints), cluster.endpoints[0].id
    futures = {
        (broker.id, name): client.send(nodes[broker.id], request)
        for broker in cluster.endpoints
        for name, request in _list_requests(cluster, broker, first=broker.id == first)
    }
    half = (time.monotonic() + deadline) / 2
    _wait(client, futures.values(), half)
    silent = {broker for (broker, _), future in futures.items() if not future.is_done}
    responder = next(
        (endpoint.id for endpoint in cluster.endpoints if endpoint.id not in silent), first
    )
    if responder != first:
        del futures[first, "users"]
        futures[responder, "users"] = client.send(nodes[responder], _build_users_request())
        _wait(client, [futures[responder, "users"]], deadline)
    # A response that is too large closes the connection, which loses all other responses on it.
    futures[responder, "acls"] = client.send(
        nodes[responder], kafka_python.DescribeAclsRequest(**EVERY_ACL)
    )
    _wait(client, futures.values(), deadline)
    responses = {request: future.value for request, future in futures.items() if future.succeeded()}
    missing = {request: future for request, future in futures.items() if not future.succeeded()}
    late = {
        request
        for request, future in missing.items()
        if request[1] == "configs" or not future.is_done or isinstance(future.exception, TIMEOUTS)
    }
    return responses, late, responder


def _wait(client: Any, futures: Iterable[Any], deadline: float) -> None:
    for future in futures:
        left = max(0.0, deadline - time.monotonic())
        client.poll(timeout_ms=left * 1000, future=future)


def map_nodes(client: Any, brokers: Sequence[Broker]) -> dict[int, str]:
    """Map each broker's id to the name by which the client knows it."""
    names = {
        (broker.host, broker.port): broker.node_id for broker in client.cluster.bootstrap_brokers()
    }
    return {broker.id: names[broker.host, broker.port] for broker in brokers}


def _list_requests(
    cluster: ClusterDescription, broker: Broker, *, first: bool
) -> Iterator[tuple[str, Any]]:
    """Yield the requests to a broker that are sent together, and their names."""
    yield "configs", build_configs_request(cluster, broker)
    yield "versions", build_versions_request()
    if first:
        yield "users", _build_users_request()


def _build_users_request() -> Any:
    # An empty list requests every user. So does null, but some brokers never respond to null.
    return kafka_python.DescribeUserScramCredentialsRequest(users=[])


def build_versions_request() -> Any:
    """Build an ApiVersions request (KIP-511: with a client name); the response has the release."""
    return kafka_python.ApiVersionsRequest(
        client_software_name="quota-ops", client_software_version="unknown"
    )


def build_configs_request(cluster: ClusterDescription, broker: Broker) -> Any:
    """Build a DescribeConfigs request for a broker; no other broker responds to it.

    For the bootstrap address it names every broker; the one at that address responds for itself.
    """
    named = cluster.brokers if broker.id == BOOTSTRAP else (broker,)
    return kafka_python.DescribeConfigsRequest(
        resources=[(_BROKER, str(broker.id), list(_CONFIGS)) for broker in named]
    )


def find_responder(configs: Any) -> int:
    """Return the id of the broker that sent a DescribeConfigs response; BOOTSTRAP when unknown.

    Source: ConfigHelper, which rejects the id of any other broker.
    """
    found = [result for result in configs.results if result.error_code == 0] if configs else []
    return int(found[0].resource_name) if len(found) == 1 else BOOTSTRAP


def parse_configs(configs: Any) -> dict[str, str]:
    """Return the settings in a DescribeConfigs response; empty when refused or missing."""
    found = [result for result in configs.results if result.error_code == 0] if configs else []
    return (
        {config.name: config.value or "" for config in found[0].configs} if len(found) == 1 else {}
    )


def parse_broker_facts(broker: Broker, versions: Any, configs: Any) -> BrokerFacts:
    """Return the facts in a broker's two responses; None means a missing response."""
    callback_class, network_threads, io_threads, protocol, _ = map(
        parse_configs(configs).get, _CONFIGS
    )
    return BrokerFacts(
        broker.id,
        broker.address,
        # A ZooKeeper broker shows the oldest possible release by its protocol, `3.9-IV0`.
        _find_release(versions) or (protocol or "").partition("-")[0] or None,
        callback_class,
        _parse_number(network_threads),
        _parse_number(io_threads),
    )


def _find_release(versions: Any) -> str | None:
    """Return the release line of a KRaft broker, from the metadata.version that it supports."""
    for feature in versions.supported_features if versions else ():
        if feature.name == METADATA_VERSION:
            at = bisect_left(_RELEASES, (feature.max_version, ""))
            return _RELEASES[at][1] if at < len(_RELEASES) else f"after {_RELEASES[-1][1]}"
    return None


def _parse_number(value: str | None) -> int | None:
    return int(value) if value and value.isdecimal() else None


def _parse_users(response: Any) -> frozenset[str] | None:
    if response is None or response.error_code != 0:
        return None
    return frozenset(result.user for result in response.results)


def _parse_principals(response: Any) -> frozenset[str] | None:
    if response is None or response.error_code != 0:
        return None
    return frozenset(acl.principal for resource in response.resources for acl in resource.acls)
