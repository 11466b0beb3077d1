"""What the brokers say besides quotas, all of them asked at once, under one short deadline."""

import time
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kafka.protocol.admin import (
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    ACLResourceType,
    DescribeAclsRequest,
    DescribeConfigsRequest,
    DescribeUserScramCredentialsRequest,
)
from kafka.protocol.metadata import ApiVersionsRequest

from quota_ops.kafka.broker_client import net_client
from quota_ops.kafka.connection import Connection
from quota_ops.kafka.preflight import Broker
from quota_ops.model.cluster_facts import BrokerFacts, ClusterFacts

Answers = Mapping[tuple[int, str], Any]
"""Responses by the broker's id and the name of what was asked; none of who did not answer."""

_BROKER = 4
"""ConfigResource.Type.BROKER"""
_CALLBACK_CLASS = "client.quota.callback.class"
_NETWORK_THREADS, _IO_THREADS = "num.network.threads", "num.io.threads"
_OURSELVES = {"client_software_name": "quota-ops", "client_software_version": "unknown"}
"""Brokers refuse an ApiVersions that does not say this (KIP-511)."""
_LARGEST = 4 * 2**20
"""Bytes: some 40,000 ACLs. To read more would keep a person waiting."""
_EVERY_ACL = {
    "resource_type_filter": ACLResourceType.ANY,
    "resource_name_filter": None,
    "pattern_type_filter": ACLResourcePatternType.ANY,
    "principal_filter": None,
    "host_filter": None,
    "operation": ACLOperation.ANY,
    "permission_type": ACLPermissionType.ANY,
}

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


def read_facts(connection: Connection, brokers: Sequence[Broker], timeout: float) -> ClusterFacts:
    """Ask every broker, and one of them for the users too; what is not answered in time is None.

    `timeout` is in seconds, for all of it.
    """
    deadline = time.monotonic() + timeout
    client = net_client(connection, brokers, timeout, largest=_LARGEST)
    try:
        answers = _answers(client, brokers, deadline)
    finally:
        client.close()
    first = brokers[0].id
    return ClusterFacts(
        tuple(_broker_facts(one, answers) for one in brokers),
        connection.principal,
        _scram_users(answers.get((first, "users"))),
        _acl_principals(answers.get((first, "acls"))),
    )


def _answers(client: Any, brokers: Sequence[Broker], deadline: float) -> Answers:
    nodes = {(one.host, one.port): one.node_id for one in client.cluster.bootstrap_brokers()}
    asked = {
        (broker.id, name): client.send(nodes[broker.host, broker.port], request)
        for broker in brokers
        for name, request in _requests(broker, first=broker is brokers[0])
    }
    for future in asked.values():
        left = max(0.0, deadline - time.monotonic())
        client.poll(timeout_ms=left * 1000, future=future)
    return {one: future.value for one, future in asked.items() if future.succeeded()}


def _requests(broker: Broker, *, first: bool) -> Iterator[tuple[str, Any]]:
    """What a broker is asked; the largest answer, which may cost the connection, comes last."""
    keys = [_CALLBACK_CLASS, _NETWORK_THREADS, _IO_THREADS]
    yield "configs", DescribeConfigsRequest(resources=[(_BROKER, str(broker.id), keys)])
    yield "versions", ApiVersionsRequest(**_OURSELVES)
    if first:
        # Empty is everybody. So is null, but a broker that refuses null fails and never answers.
        yield "users", DescribeUserScramCredentialsRequest(users=[])
        yield "acls", DescribeAclsRequest(**_EVERY_ACL)


def _broker_facts(broker: Broker, answers: Answers) -> BrokerFacts:
    versions, configs = answers.get((broker.id, "versions")), answers.get((broker.id, "configs"))
    told = configs.results[0] if configs and configs.results else None
    if told is None or told.error_code != 0:
        return BrokerFacts(broker.id, broker.address, _release(versions))
    values = {one.name: one.value or "" for one in told.configs}
    return BrokerFacts(
        broker.id,
        broker.address,
        _release(versions),
        values.get(_CALLBACK_CLASS),
        _number(values.get(_NETWORK_THREADS)),
        _number(values.get(_IO_THREADS)),
    )


def _release(versions: Any) -> str | None:
    """The release line of a broker by the metadata.version that it could speak."""
    for feature in versions.supported_features if versions else ():
        if feature.name == "metadata.version":
            at = bisect_left(_RELEASES, (feature.max_version, ""))
            return _RELEASES[at][1] if at < len(_RELEASES) else f"after {_RELEASES[-1][1]}"
    return None


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
