"""Holds: entities that no run writes until a given time.

A hold ends without an event: `select_current_holds` leaves it out from its end on.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Self

from quota_ops.model.entity import Entity
from quota_ops.model.field_types import refuse_unknown
from quota_ops.model.filter import EntityFilter, EntityGroup
from quota_ops.model.moment import iso_utc
from quota_ops.model.policy import filter_from_json, filter_json


@dataclass(frozen=True, slots=True)
class Hold:
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
        """Return the hold as JSON values; times are in UTC, to the second."""
        return {
            "who": _who_json(self.who),
            "until": iso_utc(self.until),
            "by": self.by,
            "login": self.login,
            "reason": self.reason,
            "at": iso_utc(self.at),
        }

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Self:
        """Parse the output of `as_json`; KeyError, TypeError or ValueError for anything else."""
        refuse_unknown(values, ("who", "until", "by", "login", "reason", "at"))
        by, reason, login = values["by"], values["reason"], values.get("login")
        if not (isinstance(by, str) and isinstance(reason, str) and isinstance(login or "", str)):
            raise TypeError(f"by is {by!r}, reason is {reason!r}, login is {login!r}")
        until, at = (datetime.fromisoformat(values[name]) for name in ("until", "at"))
        if until.tzinfo is None or at.tzinfo is None:
            raise ValueError(f"{values['until']} or {values['at']} has no zone")
        return cls(_who_from_json(values["who"]), until, by, reason, at, login)


def _who_json(who: EntityFilter | EntityGroup) -> dict[str, Any]:
    if isinstance(who, EntityGroup):
        return {"group": who.text, "entities": sorted(who.entities)}
    return filter_json(who)


def _who_from_json(values: dict[str, Any]) -> EntityFilter | EntityGroup:
    if not isinstance(values.get("group"), str):
        return filter_from_json(values)
    for name in values["entities"]:
        Entity.parse(name)
    return EntityGroup(values["group"], frozenset(values["entities"]))


def select_current_holds(holds: Iterable[Hold], now: datetime) -> tuple[Hold, ...]:
    """Return the holds that have not ended; the last hold on the same entities replaces others.

    A release ends a hold immediately, also if the clock of the machine that recorded it is ahead.
    """
    last = {one.who: one for one in holds}
    return tuple(one for one in last.values() if one.until > now and not one.is_release)


def find_hold(holds: Sequence[Hold], entity: Entity) -> Hold | None:
    """Return the hold on an entity that lasts longest; None if the entity is not held."""
    found = (one for one in holds if one.who.accepts(entity))
    return max(found, key=lambda one: one.until, default=None)
