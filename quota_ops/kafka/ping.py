"""Ask a cluster what quota-ops needs to know of it, each broker as soon as it is connected."""

import time
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

from kafka.errors import IncompatibleBrokerVersion, KafkaError, KafkaTimeoutError

from quota_ops.kafka.client.broker_client import net_client, reason
from quota_ops.kafka.client.description import Broker, ClusterDescription
from quota_ops.kafka.client.kafka_python import (
    AlterClientQuotasResponse,
    DescribeUserScramCredentialsRequest,
)
from quota_ops.kafka.connection import Connection
from quota_ops.kafka.facts import (
    METADATA_VERSION,
    ZOOKEEPER,
    broker_facts,
    config_values,
    configs_request,
    nodes_of,
    speaker,
    versions_request,
)
from quota_ops.kafka.messages import (
    ALTER_CONFIGS,
    CLUSTER_AUTHORIZATION_FAILED,
    DESCRIBE,
    DESCRIBE_CONFIGS,
    PROBE,
    alter_request,
    error_name,
    grant_command,
    probe_request,
)
from quota_ops.kafka.metadata import cluster_request, registered_brokers
from quota_ops.kafka.preflight import preflight
from quota_ops.model.alteration import Alteration
from quota_ops.model.cluster_facts import BrokerFacts
from quota_ops.model.entity import USER, Entity
from quota_ops.model.ping import BrokerPing, ClusterPing, Mode, Right
from quota_ops.model.policy import Policy
from quota_ops.model.registration import (
    NO_BROKERS,
    KnownBrokers,
    Registered,
    find_absent,
    find_needless,
)
from quota_ops.model.verification import BOOTSTRAP

_DEADLINE = 4.0
_SHORTEST = 1.0
_CALLS = {
    "versions": ("ApiVersions", "0.10"),
    "probe": ("DescribeClientQuotas", "2.6"),
    "alter": ("AlterClientQuotas", "2.6"),
    "users": ("DescribeUserScramCredentials", "2.7"),
}
"""By our name: Kafka's, and the release that it came with."""
_CLEAR = Alteration(Entity.of({USER: PROBE}), (("producer_byte_rate", None),))


def ping(connection: Connection, policy: Policy, known: KnownBrokers = NO_BROKERS) -> ClusterPing:
    """Ask every broker for what is nobody's, and one what we may do; within five seconds.

    By the policy only the bootstrap address is asked. `known` are the brokers of the last verified
    run, which count where the cluster does not name those that are fenced.

    To alter is tried by validate-only, on a user that is not there. Raises what `preflight` raises.
    """
    deadline = time.monotonic() + _DEADLINE
    found = preflight(connection, policy.cluster_id, policy.verify)
    left = max(_SHORTEST, deadline - time.monotonic())
    client = net_client(connection, found.asked, left)
    try:
        asked = _Asked(client, found)
        asked.wait(left)
    finally:
        client.close()
    registered = asked.registered()
    live = {one.id for one in found.brokers}
    return ClusterPing(
        found.cluster_id,
        connection.principal,
        _mode(asked.answers("versions"), asked.answers("configs")),
        tuple(_brokers(found, asked)),
        tuple(_rights(connection, asked)),
        bootstrap=found.bootstrap is not None,
        absent=find_absent(live, registered, known, retired=policy.retired),
        complete=registered is not None,
        needless=find_needless(live, registered, policy.retired),
    )


class _Asked:
    """The requests under way and how they ended, by broker and by what was asked."""

    def __init__(self, client: Any, cluster: ClusterDescription) -> None:
        self._client = client
        self._cluster = cluster
        self._nodes = nodes_of(client, cluster.asked)
        self._futures: dict[tuple[int, str], Any] = {}
        self._seconds: dict[tuple[int, str], float] = {}
        self._waited = 0.0
        self._speaker: int | None = None
        for broker in cluster.asked:
            connected = self._send(broker, "versions", versions_request())
            connected.add_callback(partial(self._connected, broker))

    def _connected(self, broker: Broker, _versions: Any) -> None:
        probed = self._send(broker, "probe", probe_request())
        probed.add_both(partial(self._probed, broker))  # alone, because it is timed

    def _probed(self, broker: Broker, answer: Any) -> None:
        if isinstance(answer, KafkaError) and not isinstance(answer, IncompatibleBrokerVersion):
            return  # the connection is lost
        self._send(broker, "configs", configs_request(self._cluster, broker))
        self._send(broker, "cluster", cluster_request())
        if self._speaker is None:
            self._speaker = broker.id
            self._send(broker, "alter", alter_request([_CLEAR], validate_only=True))
            self._send(broker, "users", DescribeUserScramCredentialsRequest(users=[(PROBE,)]))

    def _send(self, broker: Broker, name: str, request: Any) -> Any:
        asked = (broker.id, name)
        future = self._client.send(self._nodes[broker.id], request)
        began = time.monotonic()
        future.add_both(lambda _: self._seconds.setdefault(asked, time.monotonic() - began))
        self._futures[asked] = future
        return future

    def wait(self, seconds: float) -> None:
        """Return when everything has ended, also what was sent meanwhile, or in so many seconds."""
        self._waited, deadline = seconds, time.monotonic() + seconds
        while not all(one.is_done for one in self._futures.values()):
            left = deadline - time.monotonic()
            if left <= 0:
                return
            self._client.poll(timeout_ms=left * 1000)

    def answers(self, name: str) -> list[Any]:
        """What the brokers answered that did."""
        ended = [one for (_, what), one in self._futures.items() if what == name]
        return [one.value for one in ended if one.succeeded()]

    def registered(self) -> tuple[Registered, ...] | None:
        """The brokers that the cluster has registered; None where no broker names them."""
        named = map(registered_brokers, self.answers("cluster"))
        return next((one for one in named if one is not None), None)

    def broker(self, broker: Broker) -> BrokerPing:
        """What one broker answered, and when."""
        versions, configs = (self._answer(broker.id, name) for name in ("versions", "configs"))
        known = broker._replace(id=speaker(configs)) if broker.id == BOOTSTRAP else broker
        facts = broker_facts(known, versions, configs)
        error = self._error(broker.id, "versions") or self._error(broker.id, "probe")
        return BrokerPing(facts, None if error else self._seconds[broker.id, "probe"], error)

    def right(self, name: str) -> tuple[bool | None, str | None]:
        """Whether the one that was asked for all brokers lets us; and if nobody knows, why."""
        if self._speaker is None:
            return None, "no broker responds"
        answer, error = self._answer(self._speaker, name), self._error(self._speaker, name)
        return (None, error) if answer is None else _granted(answer)

    def _answer(self, broker: int, name: str) -> Any:
        future = self._futures.get((broker, name))
        return future.value if future and future.succeeded() else None

    def _error(self, broker: int, name: str) -> str | None:
        future = self._futures.get((broker, name))
        if future is None or future.succeeded():
            return None
        if isinstance(future.exception, IncompatibleBrokerVersion):
            call, release = _CALLS[name]
            return f"does not offer {call}, as Apache Kafka does since {release}"
        return reason(future.exception or KafkaTimeoutError(), self._waited)


def _brokers(cluster: ClusterDescription, asked: _Asked) -> Iterator[BrokerPing]:
    """Who was asked, then whom the bootstrap address stands for."""
    answers = [asked.broker(one) for one in cluster.asked]
    yield from answers
    told = {one.facts.id for one in answers}
    if cluster.bootstrap:
        for one in cluster.brokers:
            if one.id not in told:
                yield BrokerPing(BrokerFacts(one.id, one.address))


def _granted(answer: Any) -> tuple[bool | None, str | None]:
    """Whether a response is no refusal; an AlterClientQuotas answers in its one entry."""
    said = answer.entries[0] if isinstance(answer, AlterClientQuotasResponse) else answer
    if said.error_code in (0, CLUSTER_AUTHORIZATION_FAILED):
        return said.error_code == 0, None
    return None, f"{error_name(said.error_code)} {said.error_message or ''}".strip()


def _rights(connection: Connection, asked: _Asked) -> Iterator[Right]:
    for name, what, operation, needed in (
        ("probe", "describe quotas", DESCRIBE_CONFIGS, True),
        ("alter", "alter quotas", ALTER_CONFIGS, True),
        ("users", "list users", DESCRIBE, False),
    ):
        granted, error = asked.right(name)
        command = grant_command(connection, operation)
        yield Right(what, operation, granted, command, needed=needed, error=error)


def _mode(versions: Iterable[Any], configs: Iterable[Any]) -> Mode | None:
    """KRaft alone finalizes a metadata.version (KIP-778); ZooKeeper's address is a broker's."""
    features = (feature.name for one in versions for feature in one.finalized_features)
    if METADATA_VERSION in features:
        return Mode.KRAFT
    return Mode.ZOOKEEPER if any(config_values(one).get(ZOOKEEPER) for one in configs) else None
