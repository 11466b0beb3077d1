"""What a cluster holds, as stages look rows up in it."""

from collections.abc import Iterable, Mapping

from quota_ops.model.entity import Entity
from quota_ops.model.rows import StoredQuota

Held = Mapping[tuple[str, str], float]
"""What a cluster holds, by (entity, key)."""


def held_by(stored: Iterable[StoredQuota]) -> Held:
    """Described rows by the text of their entity, and their key."""
    held: dict[tuple[str, str], float] = {}
    last: Entity | None = None
    text = ""
    for entity, key, value in stored:
        if entity is not last:  # an entity's keys come one after the other
            last, text = entity, entity.text
        held[text, key] = value
    return held
