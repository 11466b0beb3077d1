"""Holds: entities that no run writes until a given time.

A hold ends without an event: `select_current_holds` leaves it out from its end on.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from msgspec import Struct

from quota_ops.model.quotas.entity import Entity
from quota_ops.model.quotas.filter import EntityFilter, EntityGroup
from quota_ops.model.stored import to_json


class Hold(Struct, frozen=True):
    """A hold of some entities until a given time; a release is a hold that has ended."""

    who: EntityFilter | EntityGroup
    until: datetime
    by: str
    reason: str
    at: datetime
    login: str | None = None
    """The login of the process that recorded it, in addition to the given name `by`."""

    @property
    def is_release(self) -> bool:
        """Whether it ends a hold rather than beginning one."""
        return self.until <= self.at

    @property
    def text(self) -> str:
        """The end, author and reason: `held until 2026-11-21 05:12 UTC by anna: a load test`."""
        return f"held until {self.until:%Y-%m-%d %H:%M} UTC by {self.by}: {self.reason}"

    def as_json(self) -> dict[str, Any]:
        """Return the hold as JSON values, for programs: the entities as one text."""
        values: dict[str, Any] = to_json(Hold, self)
        return values | {"who": self.who.text}


def select_current_holds(holds: Iterable[Hold], now: datetime) -> tuple[Hold, ...]:
    """Return the holds that have not ended; the last hold on the same entities replaces others.

    A release ends a hold immediately, even if the clock of the machine that recorded it is ahead.
    """
    last = {hold.who: hold for hold in holds}
    return tuple(hold for hold in last.values() if hold.until > now and not hold.is_release)


def find_hold(holds: Sequence[Hold], entity: Entity) -> Hold | None:
    """Return the hold on an entity that lasts longest; None if the entity is not held."""
    found = (hold for hold in holds if hold.who.accepts(entity))
    return max(found, key=lambda hold: hold.until, default=None)
