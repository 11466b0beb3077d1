"""The result of a ping: brokers, their responses, and the operations that are authorized."""

from dataclasses import dataclass
from enum import StrEnum

from quota_ops.model.cluster_facts import BrokerFacts, ClusterFacts
from quota_ops.model.errors import ClusterTrouble, Refused
from quota_ops.model.registration import Absent


class Mode(StrEnum):
    """Where a cluster keeps its metadata."""

    KRAFT = "KRaft"
    ZOOKEEPER = "ZooKeeper"


@dataclass(frozen=True, slots=True)
class BrokerPing:
    """One broker's own answer to a DescribeClientQuotas: in how many seconds, or why not.

    Neither for a broker that was not asked.
    """

    facts: BrokerFacts
    seconds: float | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Right:
    """Whether we may do something, by which operation on the resource Cluster; None is unknown.

    `grant` is the command line that grants it, `error` why it could not be found out. Without a
    right that is not `needed` only some remarks are missing.
    """

    what: str
    operation: str
    granted: bool | None
    grant: str
    needed: bool = True
    error: str | None = None


@dataclass(frozen=True, slots=True)
class ClusterPing:
    """The cluster, its brokers, and what we may do; `mode` None is unknown.

    The brokers are in order of id; `absent` are those that no client is sent to, and `complete`
    says whether the cluster named them all. `needless` is as in `Metadata`. With `bootstrap` only
    that address was asked, and who answered there comes first, by the id BOOTSTRAP when that is
    not known.
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
        """The absent brokers that should have answered."""
        counted = (one for one in self.absent if one.retired is None)
        return () if self.bootstrap else tuple(counted)

    @property
    def unreached(self) -> tuple[int, ...]:
        """The brokers that said nothing at all at the address that they advertise."""
        silent = [one.facts.id for one in self.brokers if one.error and one.facts.version is None]
        return () if self.bootstrap else tuple(silent)

    @property
    def facts(self) -> ClusterFacts:
        """What the brokers said of themselves."""
        return ClusterFacts(tuple(one.facts for one in self.brokers), self.principal)

    @property
    def exit_code(self) -> int:
        """3 when a broker or a needed answer is missing, 1 when a needed right is, else 0."""
        unknown = any(one.needed and one.granted is None for one in self.rights)
        if unknown or self.missed or any(one.error for one in self.brokers):
            return ClusterTrouble.exit_code
        return Refused.exit_code if self.missing else 0

    @property
    def missing(self) -> tuple[Right, ...]:
        """What an administrator has to grant before quota-ops can do all its work."""
        return tuple(one for one in self.rights if one.needed and one.granted is False)
