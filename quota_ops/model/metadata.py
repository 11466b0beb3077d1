"""How current the metadata of the brokers is, and which brokers are absent."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self

from quota_ops.model.field_types import check_types
from quota_ops.model.registration import Absent

OLD = 5.0
"""Seconds. A broker that follows has the newest metadata twice a second, also where nothing
happens (metadata.max.idle.interval.ms)."""

_YOUNGER: dict[str, Any] = {
    "observers": (),
    "answered": (),
    "absent": (),
    "complete": None,
    "needless": (),
}
"""Fields that earlier versions did not record."""


@dataclass(frozen=True, slots=True)
class Metadata:
    """The state of the metadata on the brokers.

    `led` is False when no controller answers through any broker, None when it cannot be known.
    `seconds` is how long ago each node had the newest metadata, `observers` those nodes that have
    no vote, `answered` the brokers that answered us. `disagree` are brokers that hold rows of ours
    otherwise than two answers said, and how many. `absent` are the cluster's brokers that no client
    is sent to; `complete` says whether the cluster named all of its brokers, None when it was not
    queried for them. `needless` are the brokers whose entry in `retired_brokers` has no effect, and
    why.
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
        """The nodes whose image is old, and its age in seconds."""
        return {node: seconds for node, seconds in self.seconds if seconds > OLD}

    @property
    def stalled(self) -> tuple[int, ...]:
        """The nodes without a vote, as brokers are, that stopped following a short while ago."""
        return tuple(node for node in self.observers if node in self.old)

    @property
    def missed(self) -> tuple[Absent, ...]:
        """The absent brokers that count: cluster.yaml does not call them retired."""
        return tuple(one for one in self.absent if one.retired is None)

    def as_json(self) -> dict[str, Any]:
        """The values as JSON has them."""
        return asdict(self) | {"absent": [one._asdict() for one in self.absent]}

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Self:
        """What `as_json` wrote; KeyError, TypeError or ValueError when it is not that."""
        values = _YOUNGER | values
        for name in ("led", "complete"):
            if values[name] not in {True, False, None}:
                raise TypeError(f"{name} is {values[name]!r}")
        return cls(
            led=values["led"],
            seconds=tuple((int(node), float(age)) for node, age in values["seconds"]),
            observers=tuple(int(node) for node in values["observers"]),
            answered=tuple(int(node) for node in values["answered"]),
            disagree=tuple((int(node), int(rows)) for node, rows in values["disagree"]),
            absent=check_types([Absent(**one) for one in values["absent"]]),
            complete=values["complete"],
            needless=tuple((int(one), str(why)) for one, why in values["needless"]),
        )
