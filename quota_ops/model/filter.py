"""Which entities are meant: KIP-546's filter, kept and answered on our side."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from quota_ops.model.entity import Entity


class Match(Enum):
    """How one part of an entity is matched; the numbers are DescribeClientQuotas' own."""

    EXACT = 0
    DEFAULT = 1
    ANY = 2


@dataclass(frozen=True, slots=True)
class FilterPart:
    """One type and what its name must be; `name` counts for EXACT only."""

    type: str
    match: Match
    name: str | None = None

    def accepts(self, name: str | None) -> bool:
        """Whether a name (None = the default) fits; ANY takes the default too, as brokers do."""
        if self.match is Match.ANY:
            return True
        return name == (self.name if self.match is Match.EXACT else None)


@dataclass(frozen=True, slots=True)
class EntityFilter:
    """Parts that must all fit; strict shuts out entities that carry further types."""

    parts: tuple[FilterPart, ...]
    strict: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "parts", tuple(sorted(self.parts, key=lambda part: part.type)))

    def accepts(self, entity: Entity) -> bool:
        """Whether the entity fits. Source: ClientQuotasImage.describe."""
        names = entity.as_dict()
        if self.strict and len(names) != len(self.parts):
            return False
        return all(part.type in names and part.accepts(names[part.type]) for part in self.parts)

    @property
    def text(self) -> str:
        """The filter as one line, `client-id=<any>,user=alice`."""
        return ",".join(
            f"{part.type}=<any>"
            if part.match is Match.ANY
            else Entity.of({part.type: part.name}).text
            for part in self.parts
        )


def any_accepts(filters: Iterable[EntityFilter], entity: Entity) -> bool:
    """Whether at least one filter fits the entity."""
    return any(entity_filter.accepts(entity) for entity_filter in filters)
