"""Pings a cluster: queries each broker as soon as it is connected, and tests permissions."""

import time
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

from kafka.errors import IncompatibleBrokerVersion, KafkaError, KafkaTimeoutError

from quota_ops.kafka import messages
from quota_ops.kafka.client.broker_client import build_client, explain_error
from quota_ops.kafka.client.description import Broker, ClusterDescription
from quota_ops.kafka.client.kafka_python import (
    AlterClientQuotasResponse,
    DescribeUserScramCredentialsRequest,
)
from quota_ops.kafka.connection import Connection
from quota_ops.kafka.facts import (
    METADATA_VERSION,
    ZOOKEEPER,
    build_configs_request,
    build_versions_request,
    find_responder,
    map_nodes,
    parse_broker_facts,
    parse_configs,
)
from quota_ops.kafka.metadata import build_cluster_request, parse_registered
from quota_ops.kafka.preflight import preflight
from quota_ops.model.clusters import cluster_facts
from quota_ops.model.clusters.cluster_facts import BrokerFacts
from quota_ops.model.clusters.ping import BrokerPing, ClusterPing, Mode, Right
from quota_ops.model.plans.policy import Policy, VerifyPolicy
from quota_ops.model.quotas.alteration import Alteration
from quota_ops.model.quotas.entity import USER, Entity
from quota_ops.model.quotas.quota import BYTE_KEY
from quota_ops.model.runs.verification import BOOTSTRAP

_DEADLINE = 4.0
_SHORTEST = 1.0
_CALLS = {
    "versions": ("ApiVersions", "0.10"),
    "describe": ("DescribeClientQuotas", "2.6"),
    "alter": ("AlterClientQuotas", "2.6"),
    "users": ("DescribeUserScramCredentials", "2.7"),
}
"""Each request's name in Kafka and the release that introduced it, by its name here."""
_CLEAR = Alteration(Entity.of({USER: messages.PING_USER}), ((BYTE_KEY, None),))


def ping(
    connection: Connection,
    policy: Policy | None,
    known: cluster_facts.KnownBrokers = cluster_facts.NO_BROKERS,
) -> ClusterPing:
    """Query every broker, and test the permissions at one of them, within five seconds.

    Without a policy, any cluster is accepted. With `verify: bootstrap` in it, only the bootstrap
    address is queried. `known` are the brokers of the last verified run; they are used if the
    cluster does not list fenced brokers.

    The permission to alter is tested with validate-only, on a user without quotas. Raises the
    errors of `preflight`.
    """
    deadline = time.monotonic() + _DEADLINE
    verify = policy.verify if policy else VerifyPolicy.EVERY_BROKER
    retired = policy.retired if policy else {}
    found = preflight(connection, policy.cluster_id if policy else None, verify)
    left = max(_SHORTEST, deadline - time.monotonic())
    client = build_client(connection, found.endpoints, left)
    try:
        requests = _Requests(client, found)
        requests.wait(left)
    finally:
        client.close()
    registered = requests.parse_registered()
    live = {broker.id for broker in found.brokers}
    return ClusterPing(
        found.cluster_id,
        connection.principal,
        _find_mode(requests.responses("versions"), requests.responses("configs")),
        tuple(_list_brokers(found, requests)),
        tuple(_list_rights(connection, requests)),
        bootstrap=found.bootstrap is not None,
        absent=cluster_facts.find_absent(live, registered, known, retired=retired),
        complete=registered is not None,
        needless=cluster_facts.find_needless(live, registered, retired),
    )


class _Requests:
    """The requests of a ping and their responses, by the broker's id and the request's name."""

    def __init__(self, client: Any, cluster: ClusterDescription) -> None:
        self._client = client
        self._cluster = cluster
        self._nodes = map_nodes(client, cluster.endpoints)
        self._futures: dict[tuple[int, str], Any] = {}
        self._seconds: dict[tuple[int, str], float] = {}
        self._waited = 0.0
        self._tester: int | None = None
        for broker in cluster.endpoints:
            connected = self._send(broker, "versions", build_versions_request())
            connected.add_callback(partial(self._send_describe, broker))

    def _send_describe(self, broker: Broker, _versions: Any) -> None:
        described = self._send(broker, "describe", messages.build_ping_request())
        described.add_both(partial(self._send_others, broker))  # alone, because it is timed

    def _send_others(self, broker: Broker, response: Any) -> None:
        if isinstance(response, KafkaError) and not isinstance(response, IncompatibleBrokerVersion):
            return  # the connection is lost
        self._send(broker, "configs", build_configs_request(self._cluster, broker))
        self._send(broker, "cluster", build_cluster_request())
        if self._tester is None:
            self._tester = broker.id
            self._send(broker, "alter", messages.build_alter_request([_CLEAR], validate_only=True))
            self._send(
                broker, "users", DescribeUserScramCredentialsRequest(users=[(messages.PING_USER,)])
            )

    def _send(self, broker: Broker, name: str, request: Any) -> Any:
        key = (broker.id, name)
        future = self._client.send(self._nodes[broker.id], request)
        began = time.monotonic()
        future.add_both(lambda _: self._seconds.setdefault(key, time.monotonic() - began))
        self._futures[key] = future
        return future

    def wait(self, seconds: float) -> None:
        """Wait until every request has ended, including those sent meanwhile, or for `seconds`."""
        self._waited, deadline = seconds, time.monotonic() + seconds
        while not all(future.is_done for future in self._futures.values()):
            left = deadline - time.monotonic()
            if left <= 0:
                return
            self._client.poll(timeout_ms=left * 1000)

    def responses(self, name: str) -> list[Any]:
        """Return the responses to a request, from the brokers that sent one."""
        ended = [future for (_, sent), future in self._futures.items() if sent == name]
        return [future.value for future in ended if future.succeeded()]

    def parse_registered(self) -> tuple[cluster_facts.Registered, ...] | None:
        """Return the brokers that the cluster has registered; None when no broker lists them."""
        found = map(parse_registered, self.responses("cluster"))
        return next((registered for registered in found if registered is not None), None)

    def describe_broker(self, broker: Broker) -> BrokerPing:
        """Return one broker's response and how long it took."""
        versions, configs = (self._response(broker.id, name) for name in ("versions", "configs"))
        known = broker._replace(id=find_responder(configs)) if broker.id == BOOTSTRAP else broker
        facts = parse_broker_facts(known, versions, configs)
        error = self._error(broker.id, "versions") or self._error(broker.id, "describe")
        return BrokerPing(facts, None if error else self._seconds[broker.id, "describe"], error)

    def check_right(self, name: str) -> tuple[bool | None, str | None]:
        """Return whether the request was authorized, or None and why that is unknown."""
        if self._tester is None:
            return None, "no broker responds"
        response, error = self._response(self._tester, name), self._error(self._tester, name)
        return (None, error) if response is None else _check_granted(response)

    def _response(self, broker: int, name: str) -> Any:
        future = self._futures.get((broker, name))
        return future.value if future and future.succeeded() else None

    def _error(self, broker: int, name: str) -> str | None:
        future = self._futures.get((broker, name))
        if future is None or future.succeeded():
            return None
        if isinstance(future.exception, IncompatibleBrokerVersion):
            call, release = _CALLS[name]
            return f"does not support {call} (Apache Kafka {release} and later)"
        return explain_error(future.exception or KafkaTimeoutError(), self._waited)


def _list_brokers(cluster: ClusterDescription, requests: _Requests) -> Iterator[BrokerPing]:
    """Yield the queried brokers; if only the bootstrap address was queried, then the others."""
    queried = [requests.describe_broker(endpoint) for endpoint in cluster.endpoints]
    yield from queried
    identified = {broker.facts.id for broker in queried}
    if cluster.bootstrap:
        for broker in cluster.brokers:
            if broker.id not in identified:
                yield BrokerPing(BrokerFacts(broker.id, broker.address))


def _check_granted(response: Any) -> tuple[bool | None, str | None]:
    """Return whether a request was authorized, by its response, or None and why it is unknown."""
    entry = response.entries[0] if isinstance(response, AlterClientQuotasResponse) else response
    if entry.error_code in (0, messages.CLUSTER_AUTHORIZATION_FAILED):
        return entry.error_code == 0, None
    return None, f"{messages.get_error_name(entry.error_code)} {entry.error_message or ''}".strip()


def _list_rights(connection: Connection, requests: _Requests) -> Iterator[Right]:
    for name, what, operation, needed in (
        ("describe", "describe quotas", messages.DESCRIBE_CONFIGS, True),
        ("alter", "alter quotas", messages.ALTER_CONFIGS, True),
        ("users", "list users", messages.DESCRIBE, False),
    ):
        granted, error = requests.check_right(name)
        command = messages.format_grant_command(connection, operation)
        yield Right(what, operation, granted, command, needed=needed, error=error)


def _find_mode(versions: Iterable[Any], configs: Iterable[Any]) -> Mode | None:
    """Return the metadata mode, KRaft or ZooKeeper; None when no response reveals it.

    Only KRaft finalizes a metadata.version (KIP-778); ZooKeeper's address is a broker setting.
    """
    features = (feature.name for version in versions for feature in version.finalized_features)
    if METADATA_VERSION in features:
        return Mode.KRAFT
    return (
        Mode.ZOOKEEPER if any(parse_configs(config).get(ZOOKEEPER) for config in configs) else None
    )
