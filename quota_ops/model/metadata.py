"""How far what the brokers describe can be trusted."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self

OLD = 5.0
"""Seconds. A broker that follows has the newest metadata twice a second, also where nothing
happens (metadata.max.idle.interval.ms)."""


@dataclass(frozen=True, slots=True)
class Metadata:
    """What is known of the brokers' images of the metadata.

    `led` is False when no controller answers through any broker, None when it cannot be known.
    `seconds` is how long ago each node had the newest metadata; `fenced` are brokers that no client
    is sent to. `disagree` are brokers that hold rows of ours otherwise than two answers said, and
    how many.
    """

    led: bool | None = None
    seconds: tuple[tuple[int, float], ...] = ()
    fenced: tuple[int, ...] = ()
    disagree: tuple[tuple[int, int], ...] = ()

    @property
    def old(self) -> Mapping[int, float]:
        """The nodes whose image is old, and its age in seconds."""
        return {node: seconds for node, seconds in self.seconds if seconds > OLD}

    def as_json(self) -> dict[str, Any]:
        """The values as JSON has them."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Self:
        """What `as_json` wrote; KeyError, TypeError or ValueError when it is not that."""
        if values["led"] not in {True, False, None}:
            raise TypeError(f"led is {values['led']!r}")
        return cls(
            led=values["led"],
            seconds=tuple((int(node), float(age)) for node, age in values["seconds"]),
            fenced=tuple(int(node) for node in values["fenced"]),
            disagree=tuple((int(node), int(rows)) for node, rows in values["disagree"]),
        )
