"""Reading back: what each broker says of each row that should now hold."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple


class Verdict(StrEnum):
    """What the brokers that answered say of one row."""

    VERIFIED = "verified"
    DIFFERS = "differs"
    UNANSWERED = "unanswered"
    """No broker answered at all."""


class Target(NamedTuple):
    """A value that the cluster is to hold; None for a key that is to be absent."""

    entity: str
    key: str
    value: float | None


class RowVerdict(NamedTuple):
    """The verdict on one row; `seen` is what the named brokers hold instead."""

    entity: str
    key: str
    expected: float | None
    verdict: Verdict
    seen: tuple[tuple[int, float | None], ...] = ()


@dataclass(frozen=True, slots=True)
class BrokerAnswer:
    """What one broker said at last: how many rows lag behind, or why it did not answer."""

    broker: int
    address: str
    asked: int
    behind: int | None
    error: str | None = None

    @property
    def agrees(self) -> bool:
        """Whether it answered, and holds every row."""
        return self.behind == 0


def behind(
    targets: Mapping[tuple[str, str], float | None], held: Mapping[tuple[str, str], float]
) -> tuple[tuple[str, str], ...]:
    """The targets (entity, key) that a broker's stored values do not meet."""
    return tuple(row for row, value in targets.items() if held.get(row) != value)
