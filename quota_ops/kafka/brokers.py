"""The connections to a cluster's brokers; a request goes to any reachable one, or to one by id."""

import time
from collections.abc import Callable, Sequence
from typing import Any

from quota_ops.kafka.client.broker_client import BrokerClient, ResponseLost
from quota_ops.kafka.client.description import Broker, ClusterDescription
from quota_ops.kafka.client.kafka_python import MetadataRequest
from quota_ops.kafka.connection import Connection
from quota_ops.model.errors import ClusterTrouble, NoResponse, Unreachable

_SHORTEST_TRY = 0.5
"""The minimum timeout of the last try of a read, in seconds."""
_LONGEST_WAIT = 0.25
"""The longest wait between two tries, in seconds; a read may give up this much too early."""


class Brokers:
    """The brokers that requests go to; the one that responded last is tried first.

    `timeout` is in seconds, for each call. Every call raises WrongCluster when a new connection
    leads to a different cluster than `cluster_id`.
    """

    def __init__(
        self, connection: Connection, cluster_id: str, endpoints: Sequence[Broker], timeout: float
    ) -> None:
        self._connection = connection
        self._cluster_id = cluster_id
        self._timeout = timeout
        self._in_order = list(endpoints)
        self._clients: dict[int, BrokerClient] = {}

    @property
    def first(self) -> Broker:
        """The broker that responded last to a request that any broker could serve."""
        return self._in_order[0]

    def read(self, request: Any, broker: int | None = None, timeout: float | None = None) -> Any:
        """Return the response to a request that writes nothing.

        With `broker`, tries that broker once. Without it, tries any broker until the timeout.
        Raises Unreachable.
        """
        if broker is None:
            return self._read_from_any(request)
        limit = min(timeout or self._timeout, self._timeout)
        return self._read(self._find_broker(broker), request, limit)

    def write(self, request: Any) -> Any:
        """Return the response to a request that writes, sent at most once.

        Raises NoResponse when it was sent, Unreachable when it was not.
        """
        return self._send_to_reachable(self._write, request, self._timeout)

    def client(self, broker: Broker) -> BrokerClient:
        """Return the client of a broker; it connects when it is first used."""
        if broker.id not in self._clients:
            self._clients[broker.id] = BrokerClient(
                self._connection, broker, self._timeout, self._cluster_id
            )
        return self._clients[broker.id]

    def close(self) -> None:
        """Close the connections to all brokers."""
        for client in self._clients.values():
            client.close()

    def _read_from_any(self, request: Any) -> Any:
        """Retry a request that writes nothing until the timeout."""
        deadline = time.monotonic() + self._timeout

        def read_once() -> Any:
            left = deadline - time.monotonic()
            return self._send_to_reachable(self._read, request, left)

        try:
            return read_once()
        except Unreachable:
            left = deadline - time.monotonic() - _SHORTEST_TRY
            if left <= 0:
                raise
            import tenacity  # its import takes longer than a broker's response

            return tenacity.Retrying(
                retry=tenacity.retry_if_exception_type(Unreachable),
                wait=tenacity.wait_exponential(multiplier=0.1, max=_LONGEST_WAIT),
                stop=tenacity.stop_before_delay(left),
                reraise=True,
            )(read_once)

    def _send_to_reachable(
        self, send: Callable[[Broker, Any, float], Any], request: Any, limit: float
    ) -> Any:
        """Try brokers until one can be reached; move those that cannot to the end of the order."""
        deadline = time.monotonic() + limit
        for untried in range(len(self._in_order), 0, -1):
            try:
                return send(self._in_order[0], request, (deadline - time.monotonic()) / untried)
            except Unreachable as error:
                self._in_order.append(self._in_order.pop(0))
                trouble = error
        raise trouble

    def _read(self, broker: Broker, request: Any, limit: float) -> Any:
        try:
            return self.client(broker).send(request, limit)
        except ResponseLost as error:
            raise Unreachable(str(error), effect="Nothing was changed.") from None

    def _write(self, broker: Broker, request: Any, limit: float) -> Any:
        try:
            return self.client(broker).send(request, limit)
        except ResponseLost as error:
            raise NoResponse(
                f"{error} The request was sent, but it is unknown whether the cluster applied it.",
                "See what the cluster stores: quota-ops describe CLUSTER",
            ) from None

    def _find_broker(self, number: int) -> Broker:
        by_id = {broker.id: broker for broker in self._in_order}
        if number in by_id:
            return by_id[number]
        known = ", ".join(map(str, sorted(by_id)))
        raise Unreachable(
            f"connection {self._connection.name}: there is no broker {number}; "
            f"the cluster's brokers are {known}."
        )


def describe_by_bootstrap(connection: Connection, seconds: float) -> ClusterDescription:
    """Return the description from the first address of bootstrap.servers that responds.

    If none responds, raises the error of the last address: Unreachable, LoginFailed, InvalidInput.
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
        response = client.send(MetadataRequest(topics=[]), limit)
    except ResponseLost as error:
        raise Unreachable(f"{error} Nothing was read or changed.") from None
    finally:
        client.close()
    nodes = (Broker(broker.node_id, broker.host, broker.port) for broker in response.brokers)
    return ClusterDescription(response.cluster_id, tuple(sorted(nodes)), server)
