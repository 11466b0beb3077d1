"""The description of a cluster: its id, its brokers, and the endpoints that requests go to."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

from quota_ops.model.verification import BOOTSTRAP

_PORT = "9092"
"""The port of an address in bootstrap.servers that has none."""


class Broker(NamedTuple):
    """A broker of the cluster and the address that it advertises; or BOOTSTRAP and its address."""

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
        """`host:port`, an IPv6 host in brackets."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def label(self) -> str:
        """The broker in an error: `broker 3 at kafka-3:9094`."""
        name = "the bootstrap address" if self.id == BOOTSTRAP else f"broker {self.id} at"
        return f"{name} {self.address}"


@dataclass(frozen=True, slots=True)
class ClusterDescription:
    """A cluster as its brokers describe it; the brokers in order of their ids.

    `bootstrap` is the bootstrap address that responded, when requests go to that address alone.
    """

    cluster_id: str
    brokers: tuple[Broker, ...]
    bootstrap: Broker | None = None

    @classmethod
    def of(cls, cluster_id: str, nodes: Iterable[Any]) -> Self:
        """Build a description from nodes with an id, a host and a port each."""
        return cls(cluster_id, tuple(sorted(Broker(one.id, one.host, one.port) for one in nodes)))

    @property
    def endpoints(self) -> tuple[Broker, ...]:
        """The addresses that requests go to."""
        return self.brokers if self.bootstrap is None else (self.bootstrap,)
