"""The results of a ping of a cluster and of a run store: responses and authorized operations."""

from enum import StrEnum

from msgspec import Struct

from quota_ops.model.clusters.cluster_facts import Absent, BrokerFacts, ClusterFacts
from quota_ops.model.errors import ClusterTrouble, InvalidInput, Refused


class Mode(StrEnum):
    """The system that stores a cluster's metadata."""

    KRAFT = "KRaft"
    ZOOKEEPER = "ZooKeeper"


class BrokerPing(Struct, frozen=True):
    """One broker's response to DescribeClientQuotas: its duration in seconds, or its error.

    A broker that was not queried has neither.
    """

    facts: BrokerFacts
    seconds: float | None = None
    error: str | None = None


class Right(Struct, frozen=True):
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


class ClusterPing(Struct, frozen=True):
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


class Operation(Struct, frozen=True):
    """An operation on the store: whether it succeeds, and the seconds of each success.

    `error` is why it failed. An operation that was not tried has neither times nor an error.
    """

    name: str
    seconds: tuple[float, ...] = ()
    error: str | None = None

    @property
    def is_authorized(self) -> bool | None:
        """Whether it succeeded; None if it was not tried."""
        return None if self.error is None and not self.seconds else self.error is None


class StorePing(Struct, frozen=True):
    """What a run store does, and what these credentials are authorized to do with it.

    `winners` has, for each number that `racers` writers tried to create at the same moment, how
    many of them succeeded; it is empty if files cannot be created. `left` is the address of the
    folder with test files that could not be deleted. `is_empty` is whether the store had nothing in
    it before: it is new, or its address has a typing error. `clock_lead` is how many seconds this
    machine's clock is ahead of the store's; 0 if they agree.
    """

    address: str
    operations: tuple[Operation, ...]
    racers: int = 0
    winners: tuple[int, ...] = ()
    left: str | None = None
    is_empty: bool = False
    clock_lead: float = 0.0

    @property
    def is_safe(self) -> bool | None:
        """Whether each number had exactly one winner; None if there was no race."""
        return set(self.winners) == {1} if self.winners else None

    @property
    def exit_code(self) -> int:
        """2 if the store is not safe to write, 1 if an operation fails, else 0."""
        if self.is_safe is False:
            return InvalidInput.exit_code
        return Refused.exit_code if any(operation.error for operation in self.operations) else 0
