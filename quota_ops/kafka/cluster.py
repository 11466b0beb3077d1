"""A cluster: describe, validate and apply its quotas, and read facts about its brokers."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Any, TypeVar

from quota_ops.kafka import messages, metadata
from quota_ops.kafka.brokers import Brokers
from quota_ops.kafka.client.broker_client import ResponseLost
from quota_ops.kafka.client.deadlines import run_in_background
from quota_ops.kafka.client.description import ClusterDescription
from quota_ops.kafka.connection import Connection
from quota_ops.kafka.facts import build_configs_request, find_responder, make_late_facts, read_facts
from quota_ops.kafka.preflight import preflight
from quota_ops.model.clusters.cluster_facts import ClusterFacts, Metadata, Registered
from quota_ops.model.errors import ClusterTrouble
from quota_ops.model.moment import uptime
from quota_ops.model.plans.policy import Policy, VerifyPolicy
from quota_ops.model.quotas.alteration import Alteration
from quota_ops.model.quotas.entity import Entity
from quota_ops.model.quotas.rows import Key, StoredQuota
from quota_ops.model.runs.outcome import EntityResponse
from quota_ops.model.runs.verification import BOOTSTRAP

T = TypeVar("T")

REQUEST_TIMEOUT = 30.0
"""Seconds for each call, including a write. When no response to a write arrives in this time,
`apply` raises NoResponse, and `delivery.write_rows` finds out whether it was applied."""


@contextmanager
def open_cluster(
    connection: Connection,
    *,
    cluster_id: str | None,
    verify: VerifyPolicy = VerifyPolicy.EVERY_BROKER,
    timeout: float = REQUEST_TIMEOUT,
) -> Iterator["Cluster"]:
    """Connect to a cluster after the preflight, and disconnect at the end of the block.

    `timeout` is in seconds, for each call; `verify` decides whether requests go to the brokers or
    to the bootstrap address alone. Raises the errors of `preflight`, for example WrongCluster
    when `cluster_id` is given and the addresses belong to another cluster.
    """
    cluster = Cluster(connection, preflight(connection, cluster_id, verify), timeout)
    try:
        yield cluster
    finally:
        cluster.close()


def open_policy(policy: Policy, connection: Connection) -> AbstractContextManager["Cluster"]:
    """Connect to a cluster as `open_cluster` does, with its policy's cluster id and `verify`."""
    return open_cluster(connection, cluster_id=policy.cluster_id, verify=policy.verify)


class Cluster:
    """A reachable cluster: its `cluster_id`, its `brokers` sorted by id, and the quota calls.

    Requests go to any of `endpoints` that responds: the brokers, or the bootstrap address alone.
    Brokers forward alterations to the controller. Each call raises WrongCluster, and sends
    nothing, when an address now leads to another cluster. `described_at` is when the last
    description that succeeded began, by `uptime`.
    """

    def __init__(
        self, connection: Connection, description: ClusterDescription, timeout: float
    ) -> None:
        self.cluster_id = description.cluster_id
        self.brokers = description.brokers
        self.endpoints = description.endpoints
        self.described_at = 0.0
        self._description = description
        self._connection = connection
        self._brokers = Brokers(connection, self.cluster_id, description.endpoints, timeout)

    @property
    def last_responder(self) -> int:
        """The id of the broker that responded last to a request that any broker could serve."""
        return self._brokers.first.id

    def describe(
        self, broker: int | None = None, timeout: float | None = None
    ) -> tuple[StoredQuota, ...]:
        """Return every stored quota, unordered, including unknown types and keys, by one request.

        With `broker`, tries that broker once, within `timeout` seconds. Without it, tries any
        broker until the cluster's timeout. A response may not yet contain the last alteration.
        Raises Unreachable, NotAuthorized.
        """
        return self._describe(
            messages.build_describe_request(), messages.parse_quotas, broker, timeout
        )

    def describe_values(
        self, broker: int | None = None, timeout: float | None = None, entity: Entity | None = None
    ) -> dict[Key, float]:
        """Return the stored values of all entities or of one, by entity and key; see `describe`."""
        return self._describe(
            messages.build_describe_request(entity), messages.parse_values, broker, timeout
        )

    def validate(self, alterations: Sequence[Alteration]) -> tuple[EntityResponse, ...]:
        """Return how the controller would respond for each entity, without writing anything.

        It responds only while the controllers have a quorum. A lost connection is retried.
        Raises Unreachable, NotAuthorized; ValueError when an entity occurs twice.
        """
        return self._alter(alterations, self._brokers.read, validate_only=True)

    def apply(self, alterations: Sequence[Alteration]) -> tuple[EntityResponse, ...]:
        """Write the alterations; return the controller's response for each entity, unordered.

        All keys of an entity succeed or fail together. The request is sent at most once. Raises
        NoResponse when it was sent and its outcome is unknown, Unreachable when it was not sent.
        The codes 7 (REQUEST_TIMED_OUT) and -1 (UNKNOWN_SERVER_ERROR) leave an entity's outcome
        unknown too. Raises NotAuthorized; ValueError when an entity occurs twice.
        """
        return self._alter(alterations, self._brokers.write, validate_only=False)

    def identify_broker(self) -> int:
        """Return the id of the broker at the bootstrap address, read from the open connection.

        Returns BOOTSTRAP when the id cannot be read.
        """
        request = build_configs_request(self._description, self.endpoints[0])
        try:
            return find_responder(self._brokers.client(self.endpoints[0]).send(request, 2.0))
        except (ClusterTrouble, ResponseLost):
            return BOOTSTRAP

    def describe_registered(self, broker: int | None) -> tuple[Registered, ...] | None:
        """Return the brokers that the cluster has registered, including fenced ones.

        Queries `broker`, or the one that responded last. Returns None when the cluster does not
        list them (Apache Kafka does since 4.0), or does not respond within two seconds.
        """
        at = self.last_responder if broker is None else broker
        with suppress(ClusterTrouble):
            return metadata.parse_registered(
                self._brokers.read(metadata.build_cluster_request(), at, 2.0)
            )
        return None

    def read_leads(
        self, names: Sequence[str], brokers: Collection[int]
    ) -> Mapping[int, Sequence[str]]:
        """Return which topics each of these brokers leads, of names and prefixes.

        Topics that do not exist, or that this user may not describe, are left out. Raises
        Unreachable.
        """
        if not names:
            return {}
        return metadata.parse_leads(
            self._brokers.read(metadata.build_topics_request(names)), names, brokers
        )

    def read_facts(self, timeout: float) -> ClusterFacts:
        """Return the brokers' releases and settings, queried in parallel over separate connections.

        A fact that is refused, or does not arrive within `timeout` seconds, is None. This call may
        run in a thread while the other calls run.
        """
        return read_facts(self._connection, self._description, timeout)

    def start_facts_query(self, timeout: float = 1.0) -> Callable[[], ClusterFacts]:
        """Start to read the facts in a thread; return a function that waits for them.

        If their query is late or fails, that function returns facts that are all late.
        """
        find_facts = run_in_background(lambda: self.read_facts(timeout), 2.5 * timeout)
        return lambda: find_facts() or make_late_facts(self._connection, self._description)

    def start_metadata_query(self, timeout: float = 1.0) -> Callable[[], Metadata | None]:
        """Start to read the age of the brokers' metadata; works like `start_facts_query`."""
        return run_in_background(
            lambda: metadata.read_metadata(self._connection, self._description, timeout),
            1.5 * timeout,
        )

    def close(self) -> None:
        """Close the connections to all brokers."""
        self._brokers.close()

    def _describe(
        self,
        request: Any,
        read: Callable[[Iterable[Any]], T],
        broker: int | None,
        timeout: float | None,
    ) -> T:
        began, response = uptime(), self._brokers.read(request, broker, timeout)
        if response.error_code == 0:
            self.described_at = began
            return read(response.entries)
        if response.error_code == messages.CLUSTER_AUTHORIZATION_FAILED:
            raise messages.make_authorization_error(self._connection, messages.DESCRIBE_CONFIGS)
        raise ClusterTrouble(
            f"connection {self._connection.name}: the broker could not describe the quotas: "
            f"{messages.get_error_name(response.error_code)} {response.error_message or ''}".strip()
        )

    def _alter(
        self, alterations: Sequence[Alteration], send: Callable[[Any], Any], *, validate_only: bool
    ) -> tuple[EntityResponse, ...]:
        if not alterations:
            return ()
        response = send(messages.build_alter_request(alterations, validate_only=validate_only))
        responses = messages.parse_responses(response.entries)
        # A proxy may deny some entities: what became of the others is in the responses.
        if {response.code for response in responses} == {messages.CLUSTER_AUTHORIZATION_FAILED}:
            raise messages.make_authorization_error(self._connection, messages.ALTER_CONFIGS)
        return responses
