"""What a cluster holds, as stages look rows up in it."""

from collections.abc import Iterable, Mapping

from quota_ops.model.entity import Entity
from quota_ops.model.rows import StoredQuota

Stored = Mapping[tuple[str, str], float]
"""What a cluster holds, by (entity, key)."""


def stored_of(described: Iterable[StoredQuota]) -> Stored:
    """Described rows by the text of their entity, and their key."""
    stored: dict[tuple[str, str], float] = {}
    last: Entity | None = None
    text = ""
    for entity, key, value in described:
        if entity is not last:  # an entity's keys come one after the other
            last, text = entity, entity.text
        stored[text, key] = value
    return stored
