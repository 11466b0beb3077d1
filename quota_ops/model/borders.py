"""Which filter of a policy an entity meets, at a cost that does not grow with their number."""

from collections.abc import Iterable

from quota_ops.model.entity import Entity
from quota_ops.model.filter import EntityFilter, Match


class Borders:
    """Filters, found by the entity or the types that they fit: a policy may protect thousands."""

    def __init__(self, filters: Iterable[EntityFilter]) -> None:
        self._single: dict[Entity, EntityFilter] = {}
        self._whole: dict[tuple[str, ...], EntityFilter] = {}
        self._other: list[EntityFilter] = []
        for one in filters:
            matches = {part.match for part in one.parts}
            if Match.ANY not in matches:
                self._single[Entity.of({part.type: part.name for part in one.parts})] = one
            elif matches == {Match.ANY}:
                self._whole[tuple(part.type for part in one.parts)] = one
            else:
                self._other.append(one)

    def meets(self, entity: Entity) -> EntityFilter | None:
        """A filter that the entity fits, or None."""
        if self._single and (found := self._single.get(entity)):
            return found
        if self._whole and (found := self._whole.get(entity.types)):
            return found
        return next((one for one in self._other if one.accepts(entity)), None)
