"""The result of a ping: brokers, their responses, and the operations that are authorized."""

from dataclasses import dataclass
from enum import StrEnum

from quota_ops.model.cluster_facts import BrokerFacts, ClusterFacts
from quota_ops.model.errors import ClusterTrouble, Refused
from quota_ops.model.registration import Absent


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
        counted = (one for one in self.absent if one.retired is None)
        return () if self.bootstrap else tuple(counted)

    @property
    def unreached(self) -> tuple[int, ...]:
        """The brokers that did not respond at all at the address that they advertise."""
        unreachable = [
            one.facts.id for one in self.brokers if one.error and one.facts.version is None
        ]
        return () if self.bootstrap else tuple(unreachable)

    @property
    def facts(self) -> ClusterFacts:
        """The facts that the brokers reported about themselves."""
        return ClusterFacts(tuple(one.facts for one in self.brokers), self.principal)

    @property
    def exit_code(self) -> int:
        """3 if a broker or a needed response is missing, 1 if a needed right is missing, else 0."""
        unknown = any(one.needed and one.granted is None for one in self.rights)
        if unknown or self.missed or any(one.error for one in self.brokers):
            return ClusterTrouble.exit_code
        return Refused.exit_code if self.missing else 0

    @property
    def missing(self) -> tuple[Right, ...]:
        """The rights that an administrator has to grant before quota-ops can do all its work."""
        return tuple(one for one in self.rights if one.needed and one.granted is False)
