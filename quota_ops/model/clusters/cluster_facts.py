"""Facts that brokers report about themselves besides quotas, and the brokers that are absent."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple, Self

from msgspec import Struct


class Registered(NamedTuple):
    """A broker that the controllers have registered; clients are not sent to a fenced one."""

    id: int
    address: str
    fenced: bool


class Absent(NamedTuple):
    """A broker that belongs to the cluster and could not be queried.

    `why` continues a sentence that begins with the broker: `is fenced`. `retired` is the reason
    in cluster.yaml why the broker is retired, None if it is not retired.
    """

    id: int
    address: str | None
    why: str
    retired: str | None = None

    @property
    def named(self) -> str:
        """The broker in a sentence: `broker 3 at kafka-3:9094`, without an unknown address."""
        return f"broker {self.id}" + (f" at {self.address}" if self.address else "")


class KnownBrokers(Struct, frozen=True):
    """The record of the last verified run: the cluster's brokers, and those that were absent.

    `absent` maps a broker to the run since which every run found it absent.
    """

    ids: tuple[int, ...] = ()
    absent: Mapping[int, str] = {}

    def after(
        self,
        run: str,
        live: Iterable[int],
        registered: Sequence[Registered] | None,
        absent: Sequence[Absent],
    ) -> Self:
        """Return the record of a run that found these brokers.

        The registration decides if it is known; otherwise a retired broker is forgotten.
        """
        counted = {broker.id for broker in absent if broker.retired is None}
        retired = {broker.id for broker in absent if broker.retired is not None}
        ids = {*live, *self.ids} - retired
        if registered is not None:
            ids = {broker.id for broker in registered}
        first = {broker: self.absent.get(broker, run) for broker in sorted(counted)}
        return type(self)(tuple(sorted(ids)), first)


NO_BROKERS = KnownBrokers()


def find_absent(
    live: Collection[int],
    registered: Sequence[Registered] | None,
    known: KnownBrokers = NO_BROKERS,
    stalled: Iterable[int] = (),
    retired: Mapping[int, str] | None = None,
) -> tuple[Absent, ...]:
    """Return the brokers that belong to the cluster and are not `live`, in order of id.

    `registered` is None if the cluster does not name its fenced brokers, as before Apache Kafka
    4.0 (KIP-1073). Then the brokers of the last verified run belong to it, and `stalled`, the nodes
    that followed the metadata until a short while ago. `retired` has the reasons in cluster.yaml.
    """
    reasons = retired or {}
    if registered is not None:
        found: dict[int, tuple[str | None, str]] = {
            broker.id: (
                broker.address,
                "is fenced" if broker.fenced else "joined after the run began",
            )
            for broker in registered
        }
    else:
        found = dict.fromkeys(stalled, (None, "stopped following the metadata"))
        found |= dict.fromkeys(known.ids, (None, "is missing"))
    return tuple(
        Absent(broker, address, _since(why, known.absent.get(broker)), reasons.get(broker))
        for broker, (address, why) in sorted(found.items())
        if broker not in live
    )


def find_needless(
    live: Collection[int], registered: Sequence[Registered] | None, retired: Mapping[int, str]
) -> tuple[tuple[int, str], ...]:
    """Return the brokers whose entry in `retired_brokers` has no effect, and why, in order of id.

    `registered` is as in `find_absent`; if it is None, only entries of live brokers are returned.
    """
    known = None if registered is None else {broker.id for broker in registered}
    return tuple(
        (broker, "is alive" if broker in live else "is not registered")
        for broker in sorted(retired)
        if broker in live or (known is not None and broker not in known)
    )


def _since(why: str, run: str | None) -> str:
    return why if run is None else f"{why}, first noticed by run {run}"


class BrokerFacts(Struct, frozen=True):
    """One broker; a value that could not be read is None.

    `version` is a release line of Apache Kafka, `4.3`. `callback_class` is the value of
    client.quota.callback.class, "" when none is set and Kafka enforces its own quotas.
    """

    id: int
    address: str
    version: str | None = None
    callback_class: str | None = None
    network_threads: int | None = None
    io_threads: int | None = None

    @property
    def threads(self) -> int | None:
        """The threads whose time request_percentage limits; None if they are not all known."""
        if self.network_threads is None or self.io_threads is None:
            return None
        return self.network_threads + self.io_threads


class ClusterFacts(Struct, frozen=True):
    """The brokers in order of id, the identity of quota-ops, and the users of the cluster.

    `principal` is the user of quota-ops, as far as the client can know it: `User:alice`;
    `client_id` is its client id. `scram_users` have a SCRAM credential, `acl_principals` an ACL;
    both are None if the cluster does not support or authorize the query, or responds too late.
    `lacks_describe` is whether it rejected one of them because quota-ops is not authorized; without
    an authorizer, a cluster has no ACLs and rejects no query. `late` are the ids of the brokers
    whose settings did not arrive in time, `late_users` is whether the users or ACLs did not.
    """

    brokers: tuple[BrokerFacts, ...]
    principal: str
    scram_users: frozenset[str] | None = None
    acl_principals: frozenset[str] | None = None
    client_id: str = "quota-ops"
    lacks_describe: bool = False
    late: tuple[int, ...] = ()
    late_users: bool = False

    @property
    def callback_classes(self) -> tuple[str, ...]:
        """The values of client.quota.callback.class that brokers have set, sorted.

        Such a class replaces Kafka's own decision on limits, and may ignore stored ones (KIP-257).
        """
        return tuple(
            sorted({broker.callback_class for broker in self.brokers if broker.callback_class})
        )


OLD = 5.0
"""Seconds after which metadata is old. A broker that follows receives new metadata twice a second,
even if nothing changes (metadata.max.idle.interval.ms)."""


class Metadata(Struct, frozen=True):
    """The state of the metadata on the brokers.

    `led` is False if no controller responds through any broker, None if that is unknown. `seconds`
    is how long ago each node had the newest metadata. `observers` are the nodes without a vote,
    `answered` the brokers that responded. `disagree` are the brokers that store managed rows
    differently from the response in use, each with its number of such rows. `absent` are the
    cluster's brokers that clients are not sent to. `complete` is whether the cluster named all of
    its brokers, None if it was not queried for them. `needless` are the brokers whose entry in
    `retired_brokers` has no effect, and why.
    """

    led: bool | None = None
    seconds: tuple[tuple[int, float], ...] = ()
    observers: tuple[int, ...] = ()
    answered: tuple[int, ...] = ()
    disagree: tuple[tuple[int, int], ...] = ()
    absent: tuple[Absent, ...] = ()
    complete: bool | None = None
    needless: tuple[tuple[int, str], ...] = ()

    @property
    def old(self) -> Mapping[int, float]:
        """The nodes whose metadata is old, and its age in seconds."""
        return {node: seconds for node, seconds in self.seconds if seconds > OLD}

    @property
    def stalled(self) -> tuple[int, ...]:
        """The nodes without a vote (brokers) that stopped following a short while ago."""
        return tuple(node for node in self.observers if node in self.old)

    @property
    def missed(self) -> tuple[Absent, ...]:
        """The absent brokers that cluster.yaml does not list as retired."""
        return tuple(broker for broker in self.absent if broker.retired is None)
