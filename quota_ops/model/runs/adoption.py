"""Adoption: which stored rows may become managed although no run wrote them."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from quota_ops.model.plans.policy import Policy
from quota_ops.model.plans.scope import Scope
from quota_ops.model.quotas.filter import EntityFilter
from quota_ops.model.quotas.rows import DesiredRow, Key, StoredQuota


class Adoption(NamedTuple):
    """A selected stored row, its declaration in Git, and why it cannot be adopted.

    `was_managed` is true if the row was already managed with this value.
    """

    entity: str
    key: str
    value: float
    declared: DesiredRow | None
    refusal: str | None
    was_managed: bool = False

    @property
    def id(self) -> Key:
        """Return entity and key."""
        return Key(self.entity, self.key)

    @property
    def adopted(self) -> bool:
        """Whether it was adopted now."""
        return self.refusal is None and not self.was_managed


def find_adoptions(
    stored: Iterable[StoredQuota],
    desired: Iterable[DesiredRow],
    policy: Policy,
    wanted: EntityFilter | None,
) -> Iterator[Adoption]:
    """Yield the rows of the entities that match, or without a filter every row that Git declares.

    The next run clears a managed row that Git does not declare, so the filter must name it.
    """
    declared = {row.id: row for row in desired}
    scope = Scope(policy)
    for entity, key, value in stored:
        declared_row = declared.get(Key(entity.text, key))
        is_selected = declared_row is not None if wanted is None else wanted.accepts(entity)
        if is_selected:
            refusal = scope.explain_unwritable(entity, key)
            yield Adoption(entity.text, key, value, declared_row, refusal)
