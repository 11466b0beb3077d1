"""The brokers that belong to a cluster, and those that clients are not sent to."""

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
