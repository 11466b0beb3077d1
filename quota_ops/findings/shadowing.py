"""Limits that no client can meet, because a level before them has one for each that could."""

from collections.abc import Collection
from typing import NamedTuple

from quota_ops.findings.codes import CODES, NAMELESS_ONLY, SHADOWED
from quota_ops.model.entity import CLIENT_ID, Entity
from quota_ops.model.finding import Finding
from quota_ops.precedence.resolution import LEVELS, Level, level_of


class Shadow(NamedTuple):
    """An entity's limit, and the entity whose limit is found before it.

    `nameless`: clients without a client id, whom no limit for client ids holds, still meet it.
    """

    entity: Entity
    by: Entity
    nameless: bool


def _can_cover(upper: Level, lower: Level) -> bool:
    """Whether a level that is looked at earlier can have every client of one that comes later.

    Each name that the upper bears must stand in the lower: of the clients of all users, or of all
    client ids, no limits of single ones leave none.
    """
    before = (upper.rank or 0) < (lower.rank or 0)
    return before and {one for one in upper.own if one[1]} <= set(lower.own)


_COVERING = {
    lower.own: tuple(upper for upper in LEVELS if _can_cover(upper, lower)) for lower in LEVELS
}
"""For each level, as it names its types, the levels before it that can hide all of a limit."""


class Hiding:
    """What hides limits of one key, of the entities that a cluster holds for it.

    Only an entity that bears a default hides others: no more need be given.
    """

    def __init__(self, stored: Collection[Entity]) -> None:
        self._stored = stored
        there = {level_of(one) for one in stored}
        self._covering = {
            own: found
            for own, levels in _COVERING.items()
            if (found := tuple(one for one in levels if one in there))
        }

    @property
    def types(self) -> frozenset[str]:
        """The types of which an entity may be hidden here."""
        return frozenset(kind for ((kind, _),) in self._covering)

    def shadow(self, entity: Entity) -> Shadow | None:
        """What hides the limit of an entity; None when some client with a client id meets it."""
        if len(entity.parts) > 1:
            return None  # of a pair's clients no level before it has all
        ((kind, name),) = entity.parts
        for level in self._covering.get(((kind, name is not None),), ()):
            upper = level.entity({} if name is None else {kind: name})
            if upper in self._stored:
                return Shadow(entity, upper, CLIENT_ID in level.types and kind != CLIENT_ID)
        return None


def report_shadow(shadow: Shadow, key: str, place: str) -> Finding:
    """What a hidden limit gives rise to; `place` says where that which hides it stands."""
    entity, by = shadow.entity, shadow.by
    if shadow.nameless:
        message = f"{key} of {entity} applies only to clients without a client id:"
        message += f" {by} ({place}) comes first for all others."
        return Finding(NAMELESS_ONLY, entity.text, key, message, CODES[NAMELESS_ONLY].remedy)
    message = (
        f"{key} of {entity} never applies: {by} ({place}) comes first for each of its clients."
    )
    return Finding(SHADOWED, entity.text, key, message, _remedy(entity))


def _remedy(entity: Entity) -> str:
    name = entity.as_dict()[CLIENT_ID]
    if name is None:
        return "Remove it, or make it a default of both user and client-id."
    return "Remove it, or add the user to the client id: that level comes first."
