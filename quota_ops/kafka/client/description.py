"""The description of a cluster: its id, its brokers, and the endpoints that receive requests."""

from collections.abc import Iterable
from typing import Any, NamedTuple, Self

from msgspec import Struct

from quota_ops.model.runs.verification import BOOTSTRAP

_PORT = "9092"
"""The default port of an address in bootstrap.servers."""


class Broker(NamedTuple):
    """A broker's id and advertised address, or BOOTSTRAP and a bootstrap address."""

    id: int
    host: str
    port: int

    @classmethod
    def at(cls, server: str) -> "Broker":
        """Parse one address of bootstrap.servers, as librdkafka does."""
        address = server.rpartition("://")[2].strip()
        host, _, port = address.rpartition(":")
        if not (host and port.isdecimal()):
            host, port = address, _PORT
        return cls(BOOTSTRAP, host.strip("[]"), int(port))

    @property
    def address(self) -> str:
        """`host:port`, with an IPv6 host in brackets."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def label(self) -> str:
        """The broker as errors name it: `broker 3 at kafka-3:9094`."""
        name = "the bootstrap address" if self.id == BOOTSTRAP else f"broker {self.id} at"
        return f"{name} {self.address}"


class ClusterDescription(Struct, frozen=True):
    """A cluster as its brokers describe it, with the brokers sorted by id.

    `bootstrap` is the bootstrap address that responded; it is set if only that address is used.
    """

    cluster_id: str
    brokers: tuple[Broker, ...]
    bootstrap: Broker | None = None

    @classmethod
    def of(cls, cluster_id: str, nodes: Iterable[Any]) -> Self:
        """Build a description from nodes that have an id, a host and a port."""
        return cls(
            cluster_id, tuple(sorted(Broker(node.id, node.host, node.port) for node in nodes))
        )

    @property
    def endpoints(self) -> tuple[Broker, ...]:
        """The addresses that receive requests."""
        return self.brokers if self.bootstrap is None else (self.bootstrap,)
