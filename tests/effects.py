"""The effects of changes, given all stored quotas."""

from collections.abc import Iterable, Mapping

from quota_ops.model.plans.effect import Effect
from quota_ops.model.quotas.rows import Key
from quota_ops.precedence import effects
from quota_ops.precedence.changed_limits import Change, list_neighbors


def find_effects(
    stored: Iterable[tuple[str, str, float]],
    changes: Mapping[Key, Change],
    ownership: effects.Ownership | None = None,
) -> dict[Key, Effect]:
    """Return the effect of each change; the stored quotas are (entity, key, value)."""
    return effects.find_effects(list_neighbors(stored, changes), changes, ownership)
