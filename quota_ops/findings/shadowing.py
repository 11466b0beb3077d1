"""Limits that apply to no client, because an earlier level has a limit for each of them."""

from collections.abc import Collection
from typing import NamedTuple

from quota_ops.findings.codes import NAMELESS_ONLY, SHADOWED, make_finding
from quota_ops.model.finding import Finding
from quota_ops.model.quotas.entity import CLIENT_ID, Entity
from quota_ops.precedence.resolution import LEVELS, Level, find_level


class Shadow(NamedTuple):
    """An entity's limit, and the entity whose limit comes first.

    `nameless`: the limit still applies to clients without a client id.
    """

    entity: Entity
    by: Entity
    nameless: bool


def _can_cover(upper: Level, lower: Level) -> bool:
    """Whether a limit at an earlier level can cover every client of one at a later level.

    Each type that the upper level names must be named by the lower one too: limits of single users
    or client ids never cover all of them.
    """
    before = (upper.rank or 0) < (lower.rank or 0)
    return before and {part for part in upper.own if part[1]} <= set(lower.own)


_COVERING = {
    lower.own: tuple(upper for upper in LEVELS if _can_cover(upper, lower)) for lower in LEVELS
}
"""For each level, by the types that it names, the earlier levels that can cover its limits."""


class Hiding:
    """Finds limits that never apply because limits of other stored entities cover them.

    Only an entity with a default covers others, so `stored` may leave out the rest.
    """

    def __init__(self, stored: Collection[Entity]) -> None:
        self._stored = stored
        there = {find_level(entity) for entity in stored}
        self._covering = {
            own: found
            for own, levels in _COVERING.items()
            if (found := tuple(level for level in levels if level in there))
        }

    @property
    def types(self) -> frozenset[str]:
        """The types of the entities that may be covered."""
        return frozenset(kind for ((kind, _),) in self._covering)

    def shadow(self, entity: Entity) -> Shadow | None:
        """Return what covers an entity's limit; None if it applies to a client with a client id."""
        if len(entity.parts) > 1:
            return None  # no earlier level covers all clients of a pair
        ((kind, name),) = entity.parts
        for level in self._covering.get(((kind, name is not None),), ()):
            upper = level.entity({} if name is None else {kind: name})
            if upper in self._stored:
                return Shadow(entity, upper, CLIENT_ID in level.types and kind != CLIENT_ID)
        return None


def report_shadow(shadow: Shadow, key: str, place: str) -> Finding:
    """Return the finding about a covered limit; `place` is where Git declares the covering one."""
    entity, code = shadow.entity, NAMELESS_ONLY if shadow.nameless else SHADOWED
    by = f"{shadow.by} ({place}) comes first"
    message, remedy = f"{key} of {entity} never applies: {by} for each of its clients.", ""
    if shadow.nameless:
        message = f"{key} of {entity} applies only to clients without a client id: {by} for all"
        message += " others."
    elif entity.as_dict()[CLIENT_ID] is None:
        remedy = "Remove it, or make it a default of both user and client-id."
    return make_finding(code, message, remedy, entity=entity.text, key=key)
