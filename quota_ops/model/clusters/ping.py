"""The result of a ping: brokers, their responses, and the operations that are authorized."""

from dataclasses import dataclass
from enum import StrEnum

from quota_ops.model.clusters.cluster_facts import BrokerFacts, ClusterFacts
from quota_ops.model.clusters.registration import Absent
from quota_ops.model.errors import ClusterTrouble, Refused


class Mode(StrEnum):
    """The system that stores a cluster's metadata."""

    KRAFT = "KRaft"
    ZOOKEEPER = "ZooKeeper"


@dataclass(frozen=True, slots=True)
class BrokerPing:
    """One broker's response to DescribeClientQuotas: its duration in seconds, or its error.

    A broker that was not queried has neither.
    """

    facts: BrokerFacts
    seconds: float | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Right:
    """Whether quota-ops is authorized for an operation on the resource Cluster; None is unknown.

    `grant` is the command that grants the operation, `error` the reason why the result is unknown.
    If a right that is not `needed` is missing, only some findings are missing.
    """

    what: str
    operation: str
    granted: bool | None
    grant: str
    needed: bool = True
    error: str | None = None


@dataclass(frozen=True, slots=True)
class ClusterPing:
    """The cluster, its brokers, and the rights of quota-ops; `mode` None is unknown.

    The brokers are in order of id; `absent` are those that clients are not sent to, and `complete`
    is whether the cluster named them all. `needless` is as in `Metadata`. With `bootstrap`, only
    that address was queried, and the broker that responded comes first, with the id BOOTSTRAP if
    its own is unknown.
    """

    cluster_id: str
    principal: str
    mode: Mode | None
    brokers: tuple[BrokerPing, ...]
    rights: tuple[Right, ...]
    bootstrap: bool = False
    absent: tuple[Absent, ...] = ()
    complete: bool = True
    needless: tuple[tuple[int, str], ...] = ()

    @property
    def missed(self) -> tuple[Absent, ...]:
        """The absent brokers that should have responded."""
        counted = (broker for broker in self.absent if broker.retired is None)
        return () if self.bootstrap else tuple(counted)

    @property
    def unreached(self) -> tuple[int, ...]:
        """The brokers that did not respond at all at the address that they advertise."""
        unreachable = [
            broker.facts.id
            for broker in self.brokers
            if broker.error and broker.facts.version is None
        ]
        return () if self.bootstrap else tuple(unreachable)

    @property
    def facts(self) -> ClusterFacts:
        """The facts that the brokers reported about themselves."""
        return ClusterFacts(tuple(broker.facts for broker in self.brokers), self.principal)

    @property
    def exit_code(self) -> int:
        """3 if a broker or a needed response is missing, 1 if a needed right is missing, else 0."""
        unknown = any(right.needed and right.granted is None for right in self.rights)
        if unknown or self.missed or any(broker.error for broker in self.brokers):
            return ClusterTrouble.exit_code
        return Refused.exit_code if self.missing else 0

    @property
    def missing(self) -> tuple[Right, ...]:
        """The rights that an administrator has to grant before quota-ops can do all its work."""
        return tuple(right for right in self.rights if right.needed and right.granted is False)
