"""The age of the brokers' metadata, and the brokers that are absent."""

from collections.abc import Mapping
from dataclasses import dataclass

from quota_ops.model.clusters.registration import Absent

OLD = 5.0
"""Seconds after which metadata is old. A broker that follows receives new metadata twice a second,
even if nothing changes (metadata.max.idle.interval.ms)."""


@dataclass(frozen=True, slots=True)
class Metadata:
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
