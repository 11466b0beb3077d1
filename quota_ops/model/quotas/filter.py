"""Entity filters as in KIP-546, evaluated by quota-ops itself."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum

from msgspec import Struct
from msgspec.structs import force_setattr

from quota_ops.model.quotas.entity import Entity


class Match(Enum):
    """How one part of an entity is matched; the numbers are DescribeClientQuotas' own."""

    EXACT = 0
    DEFAULT = 1
    ANY = 2


class FilterPart(Struct, frozen=True):
    """One entity type and how its name must match; only EXACT uses `name`."""

    type: str
    match: Match
    name: str | None = None

    def accepts(self, name: str | None) -> bool:
        """Return whether a name (None = the default) matches; as on brokers, ANY includes None."""
        if self.match is Match.ANY:
            return True
        return name == (self.name if self.match is Match.EXACT else None)


class EntityFilter(Struct, frozen=True):
    """Parts that must all match; `strict` excludes entities with other types."""

    parts: tuple[FilterPart, ...]
    strict: bool = True

    def __post_init__(self) -> None:
        force_setattr(self, "parts", tuple(sorted(self.parts, key=lambda part: part.type)))

    def accepts(self, entity: Entity) -> bool:
        """Return whether the entity matches. Source: ClientQuotasImage.describe."""
        names = entity.as_dict()
        if self.strict and len(names) != len(self.parts):
            return False
        return all(part.type in names and part.accepts(names[part.type]) for part in self.parts)

    def overlaps(self, other: "EntityFilter | EntityGroup") -> bool:
        """Return whether an entity can match both filters, each of which names all its types."""
        if isinstance(other, EntityGroup):
            return other.overlaps(self)
        pairs = self._pairs(other)
        return pairs is not None and all(
            pair == two or Match.ANY in {pair.match, two.match} for pair, two in pairs
        )

    def covers(self, other: "EntityFilter | EntityGroup") -> bool:
        """Return whether this filter matches all entities of the other; types as in `overlaps`."""
        if isinstance(other, EntityGroup):
            return all(self.accepts(Entity.parse(name)) for name in other.entities)
        pairs = self._pairs(other)
        return pairs is not None and all(pair in (two, _any(pair)) for pair, two in pairs)

    def _pairs(self, other: "EntityFilter") -> list[tuple[FilterPart, FilterPart]] | None:
        """Return the parts of both filters, paired by type; None if their types differ."""
        pairs = list(zip(self.parts, other.parts, strict=False))
        same = len(self.parts) == len(other.parts) and all(a.type == b.type for a, b in pairs)
        return pairs if same else None

    @property
    def text(self) -> str:
        """The filter as one line, `client-id=<any>,user=alice`."""
        return ",".join(
            f"{part.type}=<any>"
            if part.match is Match.ANY
            else Entity.of({part.type: part.name}).text
            for part in self.parts
        )


@dataclass(frozen=True, slots=True)
class EntityGroup:
    """Entities that belonged to a run, an owner or a file when the group was made.

    `text` names the group, `run 2026-11-22T20-01-50Z-866f`, and two groups with one text are equal.
    """

    text: str
    entities: frozenset[str] = field(compare=False)

    def __post_init__(self) -> None:
        for name in self.entities:
            Entity.parse(name)

    def accepts(self, entity: Entity) -> bool:
        """Return whether the entity is one of them."""
        return entity.text in self.entities

    def overlaps(self, other: "EntityFilter | EntityGroup") -> bool:
        """Return whether the other accepts one of them."""
        return any(other.accepts(Entity.parse(name)) for name in self.entities)

    def covers(self, other: "EntityFilter | EntityGroup") -> bool:
        """Return whether the other accepts no entity but these."""
        if isinstance(other, EntityGroup):
            return other.entities <= self.entities
        return any(other == exactly(Entity.parse(name)) for name in self.entities)


def exactly(entity: Entity) -> EntityFilter:
    """Return the filter that this entity alone matches."""
    parts = (
        (kind, Match.DEFAULT if name is None else Match.EXACT, name) for kind, name in entity.parts
    )
    return EntityFilter(tuple(FilterPart(*part) for part in parts))


def _any(part: FilterPart) -> FilterPart:
    return FilterPart(part.type, Match.ANY)


class FilterIndex:
    """An index of filters by entity and types, for policies that protect thousands of entities."""

    def __init__(self, filters: Iterable[EntityFilter]) -> None:
        self._single: dict[Entity, EntityFilter] = {}
        self._whole: dict[tuple[str, ...], EntityFilter] = {}
        self._partly: dict[tuple[tuple[str, ...], str, str | None], EntityFilter] = {}
        for entity_filter in filters:
            matches = {part.match for part in entity_filter.parts}
            types = tuple(part.type for part in entity_filter.parts)
            if Match.ANY not in matches:
                self._single[Entity.of({part.type: part.name for part in entity_filter.parts})] = (
                    entity_filter
                )
            elif matches == {Match.ANY}:
                self._whole[types] = entity_filter
            else:
                (named,) = (part for part in entity_filter.parts if part.match is not Match.ANY)
                self._partly[types, named.type, named.name] = entity_filter

    def find_match(self, entity: Entity) -> EntityFilter | None:
        """Return a filter that the entity matches, or None."""
        if self._single and (found := self._single.get(entity)):
            return found
        if self._whole and (found := self._whole.get(entity.types)):
            return found
        if self._partly:
            for kind, name in entity.parts:
                if found := self._partly.get((entity.types, kind, name)):
                    return found
        return None
