"""Which filter of a policy an entity meets, at a cost that does not grow with their number."""

from collections.abc import Iterable

from quota_ops.model.entity import Entity
from quota_ops.model.filter import EntityFilter, Match


class Borders:
    """Filters, found by the entity or the types that they fit: a policy may protect thousands."""

    def __init__(self, filters: Iterable[EntityFilter]) -> None:
        self._single: dict[Entity, EntityFilter] = {}
        self._whole: dict[tuple[str, ...], EntityFilter] = {}
        self._partly: dict[tuple[tuple[str, ...], str, str | None], EntityFilter] = {}
        for one in filters:
            matches = {part.match for part in one.parts}
            types = tuple(part.type for part in one.parts)
            if Match.ANY not in matches:
                self._single[Entity.of({part.type: part.name for part in one.parts})] = one
            elif matches == {Match.ANY}:
                self._whole[types] = one
            else:
                (named,) = (part for part in one.parts if part.match is not Match.ANY)
                self._partly[types, named.type, named.name] = one

    def meets(self, entity: Entity) -> EntityFilter | None:
        """A filter that the entity fits, or None."""
        if self._single and (found := self._single.get(entity)):
            return found
        if self._whole and (found := self._whole.get(entity.types)):
            return found
        if self._partly:
            for kind, name in entity.parts:
                if found := self._partly.get((entity.types, kind, name)):
                    return found
        return None
