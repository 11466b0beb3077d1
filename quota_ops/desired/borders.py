"""Which filter of a policy an entity meets, at a cost that does not grow with their number."""

from collections.abc import Iterable

from quota_ops.model.entity import Entity
from quota_ops.model.filter import EntityFilter, Match


class Borders:
    """Filters, those that fit a single entity kept by it: a policy may protect thousands."""

    def __init__(self, filters: Iterable[EntityFilter]) -> None:
        self._single: dict[Entity, EntityFilter] = {}
        self._wide: list[EntityFilter] = []
        for one in filters:
            if any(part.match is Match.ANY for part in one.parts):
                self._wide.append(one)
            else:
                self._single[Entity.of({part.type: part.name for part in one.parts})] = one

    def meets(self, entity: Entity) -> EntityFilter | None:
        """A filter that the entity fits, or None."""
        return self._single.get(entity) or next(
            (one for one in self._wide if one.accepts(entity)), None
        )
