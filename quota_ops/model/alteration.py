"""An alteration: what one request entry changes on one entity."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby

from quota_ops.model.entity import Entity
from quota_ops.model.rows import BatchRow


@dataclass(frozen=True, slots=True)
class Alteration:
    """Keys of one entity and their new values; None clears a key.

    Kafka's name is ClientQuotaAlteration; all its keys succeed or fail together.
    """

    entity: Entity
    changes: tuple[tuple[str, float | None], ...]


def alterations(rows: Iterable[BatchRow]) -> tuple[Alteration, ...]:
    """The rows of one batch, sorted by entity as BATCHES is, as one alteration per entity."""
    return tuple(
        Alteration(Entity.parse(entity), tuple((row.key, row.after) for row in group))
        for entity, group in groupby(rows, key=lambda row: row.entity)
    )
