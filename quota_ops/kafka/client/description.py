"""What a cluster says of itself: its id, its brokers, and whom calls go to."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

from quota_ops.model.verification import BOOTSTRAP

_PORT = "9092"
"""Where bootstrap.servers names none."""


class Broker(NamedTuple):
    """A broker of the cluster and the address that it advertises; or BOOTSTRAP and its address."""

    id: int
    host: str
    port: int

    @classmethod
    def at(cls, server: str) -> "Broker":
        """The address that one of bootstrap.servers names, read as librdkafka does."""
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
    def named(self) -> str:
        """What it is called in an error: `broker 3 at kafka-3:9094`."""
        who = "the bootstrap address" if self.id == BOOTSTRAP else f"broker {self.id} at"
        return f"{who} {self.address}"


@dataclass(frozen=True, slots=True)
class ClusterDescription:
    """What a cluster says of itself; the brokers in order of their ids.

    `bootstrap` is the bootstrap address that answered, where nobody else is to be asked.
    """

    cluster_id: str
    brokers: tuple[Broker, ...]
    bootstrap: Broker | None = None

    @classmethod
    def of(cls, cluster_id: str, nodes: Iterable[Any]) -> Self:
        """The description of what has an id, a host and a port for each broker."""
        return cls(cluster_id, tuple(sorted(Broker(one.id, one.host, one.port) for one in nodes)))

    @property
    def asked(self) -> tuple[Broker, ...]:
        """Whom calls go to."""
        return self.brokers if self.bootstrap is None else (self.bootstrap,)
