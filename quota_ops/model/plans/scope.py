"""Which quotas runs may write: what `scope` covers, `protect` does not, and brokers accept."""

from collections.abc import Iterable, Iterator

from quota_ops.model.plans.policy import Policy
from quota_ops.model.quotas.entity import Entity
from quota_ops.model.quotas.filter import EntityFilter, FilterIndex
from quota_ops.model.quotas.quota import explain_unalterable
from quota_ops.model.quotas.rows import ActualRow, StoredQuota

PROTECTED = "protected"
NEWLY_PROTECTED = "newly protected"
"""Protected by a policy that no run has applied yet. SQL compares both texts."""


class Scope:
    """The entities whose quotas the runs of a policy may write."""

    def __init__(self, policy: Policy) -> None:
        self._scope, self._protect = FilterIndex(policy.scope), FilterIndex(policy.protect)

    def covers(self, entity: Entity) -> bool:
        """Return whether `scope` covers an entity, protected or not."""
        return self._scope.find_match(entity) is not None

    def find_protection(self, entity: Entity) -> EntityFilter | None:
        """Return the entry of `protect` that covers an entity; None if none does."""
        return self._protect.find_match(entity)

    def explain_unwritable(self, entity: Entity, key: str) -> str | None:
        """Return why no plan can write a row, so that it cannot be managed; None if one can."""
        if self.find_protection(entity) is not None:
            return PROTECTED
        return explain_unalterable(entity.types, key) if self.covers(entity) else _OUTSIDE


_OUTSIDE = "outside the scope"


def judge_scope(
    policy: Policy, stored: Iterable[StoredQuota], applied: Policy | None = None
) -> Iterator[ActualRow]:
    """Yield the stored quotas with whether runs may write each of them, by a policy.

    What only this policy protects, and not the last applied one, is newly protected.
    """
    scope, agreed = Scope(policy), Scope(applied or policy)
    last: Entity | None = None
    types: tuple[str, ...] = ()
    text, in_scope, protected = "", False, ""
    for entity, key, value in stored:
        if entity is not last:
            last, text, types = entity, entity.text, entity.types
            in_scope, protected = scope.covers(entity), ""
            if scope.find_protection(entity) is not None:
                protected = PROTECTED if agreed.find_protection(entity) else NEWLY_PROTECTED
        hands_off = protected or explain_unalterable(types, key)
        yield ActualRow(policy.cluster_id, text, key, value, in_scope, hands_off)
