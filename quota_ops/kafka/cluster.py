"""One cluster, and the three calls that quota-ops makes: describe, validate and apply."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Any, TypeVar

from quota_ops.kafka.brokers import Brokers
from quota_ops.kafka.client.broker_client import Unanswered
from quota_ops.kafka.client.deadlines import aside
from quota_ops.kafka.client.description import ClusterDescription
from quota_ops.kafka.connection import Connection
from quota_ops.kafka.facts import configs_request, read_facts, speaker
from quota_ops.kafka.messages import (
    ALTER_CONFIGS,
    CLUSTER_AUTHORIZATION_FAILED,
    DESCRIBE_CONFIGS,
    alter_request,
    describe_request,
    entity_answers,
    error_name,
    not_authorized,
    stored_quotas,
    stored_values,
)
from quota_ops.kafka.metadata import cluster_request, read_metadata, registered_brokers
from quota_ops.kafka.preflight import preflight
from quota_ops.model.alteration import Alteration
from quota_ops.model.cluster_facts import ClusterFacts
from quota_ops.model.entity import Entity
from quota_ops.model.errors import ClusterTrouble
from quota_ops.model.metadata import Metadata
from quota_ops.model.outcome import EntityAnswer
from quota_ops.model.policy import Policy, VerifyPolicy
from quota_ops.model.registration import Registered
from quota_ops.model.rows import Key, StoredQuota
from quota_ops.model.verification import BOOTSTRAP

T = TypeVar("T")


@contextmanager
def open_cluster(
    connection: Connection,
    *,
    cluster_id: str | None,
    verify: VerifyPolicy = VerifyPolicy.EVERY_BROKER,
    timeout: float = 30.0,
) -> Iterator["Cluster"]:
    """Connect to a cluster after the preflight, and disconnect at the end of the block.

    `timeout` is in seconds, for each call; `verify` says whom they go to. Raises what `preflight`
    raises; WrongCluster when `cluster_id` is given and another cluster answers.
    """
    cluster = Cluster(connection, preflight(connection, cluster_id, verify), timeout)
    try:
        yield cluster
    finally:
        cluster.close()


def open_policy(policy: Policy, connection: Connection) -> AbstractContextManager["Cluster"]:
    """Connect to the cluster that a policy names, and ask whom it says; as `open_cluster`."""
    return open_cluster(connection, cluster_id=policy.cluster_id, verify=policy.verify)


class Cluster:
    """A reachable cluster: `cluster_id`, its `brokers` in order of id, and the quota calls.

    The calls go to any of `asked` that answers, which are the brokers, or the bootstrap address
    alone; brokers forward what alters to the controller. Each call raises WrongCluster, and sends
    nothing, where an address leads to another cluster by now.
    """

    def __init__(
        self, connection: Connection, description: ClusterDescription, timeout: float
    ) -> None:
        self.cluster_id = description.cluster_id
        self.brokers = description.brokers
        self.asked = description.asked
        self._description = description
        self._connection = connection
        self._brokers = Brokers(connection, self.cluster_id, description.asked, timeout)

    @property
    def last_asked(self) -> int:
        """The id of the broker that answered last where any would do."""
        return self._brokers.first.id

    def describe(
        self, broker: int | None = None, timeout: float | None = None
    ) -> tuple[StoredQuota, ...]:
        """Everything that is stored, unknown types and keys too, in one request; unordered.

        With `broker`, what that broker holds, asked once, within `timeout` seconds. Without, any
        broker will do, and a lost connection is tried again within the cluster's timeout. An
        answer may be behind the last alteration.
        Raises Unreachable, NotAuthorized.
        """
        return self._described(describe_request(), stored_quotas, broker, timeout)

    def stored(
        self,
        broker: int | None = None,
        timeout: float | None = None,
        entity: Entity | None = None,
    ) -> dict[Key, float]:
        """The same by (entity, key), or what is stored of one entity alone; as `describe`."""
        return self._described(describe_request(entity), stored_values, broker, timeout)

    def validate(self, alterations: Sequence[Alteration]) -> tuple[EntityAnswer, ...]:
        """What the controller would answer to each entity; nothing is written.

        It answers only while the controllers have a quorum. A lost connection is tried again.
        Raises Unreachable, NotAuthorized; ValueError when an entity is named twice.
        """
        return self._altered(alterations, self._brokers.read, validate_only=True)

    def apply(self, alterations: Sequence[Alteration]) -> tuple[EntityAnswer, ...]:
        """Write, and return the controller's answer to each entity, in no order.

        All keys of an entity succeed or fail together. It is sent at most once: NoAnswer says that
        it was sent and what became of it is unknown; Unreachable that it was not sent. The codes 7
        (REQUEST_TIMED_OUT) and -1 (UNKNOWN_SERVER_ERROR) on an entity leave it unknown as well.
        Raises NotAuthorized; ValueError when an entity is named twice.
        """
        return self._altered(alterations, self._brokers.write, validate_only=False)

    def speaker(self, timeout: float = 2.0) -> int:
        """The broker behind the bootstrap address, by the connection of the call before this.

        BOOTSTRAP when it does not tell who it is.
        """
        request = configs_request(self._description, self.asked[0])
        try:
            return speaker(self._brokers.client(self.asked[0]).ask(request, timeout))
        except (ClusterTrouble, Unanswered):
            return BOOTSTRAP

    def registered(self, broker: int | None = None) -> tuple[Registered, ...] | None:
        """The brokers that the cluster has registered, also those that no client is sent to.

        Queried through `broker`, or the one that answered last. None where the cluster does not
        name them (Apache Kafka does since 4.0), or does not answer within two seconds.
        """
        at = self.last_asked if broker is None else broker
        with suppress(ClusterTrouble):
            return registered_brokers(self._brokers.read(cluster_request(), at, 2.0))
        return None

    def facts(self, timeout: float) -> ClusterFacts:
        """What the brokers say besides quotas, all asked at once by connections of its own.

        What is not answered within `timeout` seconds, or refused, is None. May run in a thread
        beside the other calls.
        """
        return read_facts(self._connection, self._description, timeout)

    def facts_aside(self, timeout: float = 1.0) -> Callable[[], ClusterFacts | None]:
        """Ask for the facts while something else is asked; what fetches them, None without any."""
        return aside(lambda: self.facts(timeout), timeout)

    def metadata_aside(self, timeout: float = 1.0) -> Callable[[], Metadata | None]:
        """Ask, while something else is asked, how old the brokers' metadata is."""
        return aside(
            lambda: read_metadata(self._connection, self._description, timeout), 1.5 * timeout
        )

    def close(self) -> None:
        """Close the connections to all brokers."""
        self._brokers.close()

    def _described(
        self,
        request: Any,
        read: Callable[[Iterable[Any]], T],
        broker: int | None,
        timeout: float | None,
    ) -> T:
        response = self._brokers.read(request, broker, timeout)
        if response.error_code == 0:
            return read(response.entries)
        if response.error_code == CLUSTER_AUTHORIZATION_FAILED:
            raise not_authorized(self._connection, DESCRIBE_CONFIGS)
        raise ClusterTrouble(
            f"cluster {self._connection.name}: the broker could not describe the quotas: "
            f"{error_name(response.error_code)} {response.error_message or ''}".strip()
        )

    def _altered(
        self,
        alterations: Sequence[Alteration],
        ask: Callable[[Any], Any],
        *,
        validate_only: bool,
    ) -> tuple[EntityAnswer, ...]:
        if not alterations:
            return ()
        response = ask(alter_request(alterations, validate_only=validate_only))
        answers = entity_answers(response.entries)
        if any(answer.code == CLUSTER_AUTHORIZATION_FAILED for answer in answers):
            raise not_authorized(self._connection, ALTER_CONFIGS)
        return answers
