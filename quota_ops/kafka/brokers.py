"""Who of a cluster's brokers is asked: any that answers, or one by its id."""

import time
from collections.abc import Callable, Sequence
from typing import Any

from quota_ops.kafka.client.broker_client import BrokerClient, Unanswered
from quota_ops.kafka.client.description import Broker, ClusterDescription
from quota_ops.kafka.client.kafka_python import MetadataRequest
from quota_ops.kafka.connection import Connection
from quota_ops.model.errors import ClusterTrouble, NoAnswer, Unreachable

_SHORTEST_TRY = 0.5
"""Seconds that the last try of a read is left."""
_LONGEST_WAIT = 0.25
"""Seconds between two tries, and so what a read may give up early at most."""


class Brokers:
    """The brokers that are asked, in order of merit: who answered last comes first.

    `timeout` is in seconds, for each call. Every call raises WrongCluster when a new connection
    leads to another cluster than `cluster_id`.
    """

    def __init__(
        self, connection: Connection, cluster_id: str, asked: Sequence[Broker], timeout: float
    ) -> None:
        self._connection = connection
        self._cluster_id = cluster_id
        self._timeout = timeout
        self._by_merit = list(asked)
        self._clients: dict[int, BrokerClient] = {}

    @property
    def first(self) -> Broker:
        """The broker that answered last where any would do."""
        return self._by_merit[0]

    def read(self, request: Any, broker: int | None = None, timeout: float | None = None) -> Any:
        """The response to what writes nothing: by a broker, asked once, else by any, patiently.

        Raises Unreachable.
        """
        if broker is None:
            return self._patiently(request)
        return self._read(self._broker(broker), request, timeout or self._timeout)

    def write(self, request: Any) -> Any:
        """The response to what writes, sent at most once.

        Raises NoAnswer when it was sent, Unreachable when it was not.
        """
        return self._first_reachable(self._write, request, self._timeout)

    def client(self, broker: Broker) -> BrokerClient:
        """The connection to a broker, which is opened when it is first used."""
        if broker.id not in self._clients:
            self._clients[broker.id] = BrokerClient(
                self._connection, broker, self._timeout, self._cluster_id
            )
        return self._clients[broker.id]

    def close(self) -> None:
        """Close the connections to all brokers."""
        for client in self._clients.values():
            client.close()

    def _patiently(self, request: Any) -> Any:
        """Ask for what writes nothing, again and again until the timeout."""
        deadline = time.monotonic() + self._timeout

        def ask() -> Any:
            left = deadline - time.monotonic()
            return self._first_reachable(self._read, request, left)

        try:
            return ask()
        except Unreachable:
            left = deadline - time.monotonic() - _SHORTEST_TRY
            if left <= 0:
                raise
            import tenacity  # noqa: PLC0415 - takes longer to import than a broker to answer

            return tenacity.Retrying(
                retry=tenacity.retry_if_exception_type(Unreachable),
                wait=tenacity.wait_exponential(multiplier=0.1, max=_LONGEST_WAIT),
                stop=tenacity.stop_before_delay(left),
                reraise=True,
            )(ask)

    def _first_reachable(
        self, ask: Callable[[Broker, Any, float], Any], request: Any, limit: float
    ) -> Any:
        """Ask brokers until one can be reached; who cannot is asked last from then on."""
        deadline = time.monotonic() + limit
        for untried in range(len(self._by_merit), 0, -1):
            try:
                return ask(self._by_merit[0], request, (deadline - time.monotonic()) / untried)
            except Unreachable as error:
                self._by_merit.append(self._by_merit.pop(0))
                trouble = error
        raise trouble

    def _read(self, broker: Broker, request: Any, limit: float) -> Any:
        try:
            return self.client(broker).ask(request, limit)
        except Unanswered as error:
            raise Unreachable(f"{error} Nothing was changed.") from None

    def _write(self, broker: Broker, request: Any, limit: float) -> Any:
        try:
            return self.client(broker).ask(request, limit)
        except Unanswered as error:
            raise NoAnswer(
                f"{error} The alteration was sent, and what became of it is unknown.",
                "What was committed shows when the cluster is described.",
            ) from None

    def _broker(self, number: int) -> Broker:
        by_id = {broker.id: broker for broker in self._by_merit}
        if number in by_id:
            return by_id[number]
        known = ", ".join(map(str, sorted(by_id)))
        raise Unreachable(
            f"cluster {self._connection.name}: broker {number} is not among its brokers: {known}."
        )


def describe_by_bootstrap(connection: Connection, seconds: float) -> ClusterDescription:
    """What the first address of bootstrap.servers that answers says of the cluster.

    Raises what the last one came to: Unreachable, LoginFailed, InvalidInput.
    """
    deadline = time.monotonic() + seconds
    servers = list(dict.fromkeys(connection.properties["bootstrap.servers"].split(",")))
    for untried in range(len(servers), 0, -1):
        server = Broker.at(servers[-untried])
        try:
            return _describe(connection, server, (deadline - time.monotonic()) / untried)
        except ClusterTrouble as error:
            trouble = error
    raise trouble


def _describe(connection: Connection, server: Broker, limit: float) -> ClusterDescription:
    client = BrokerClient(connection, server, limit)
    try:
        told = client.ask(MetadataRequest(topics=[]), limit)
    except Unanswered as error:
        raise Unreachable(f"{error} Nothing was read or changed.") from None
    finally:
        client.close()
    nodes = (Broker(one.node_id, one.host, one.port) for one in told.brokers)
    return ClusterDescription(told.cluster_id, tuple(sorted(nodes)), server)
