"""Which rows of a cluster may be adopted: become ours although no run of ours put them there."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from quota_ops.model.entity import Entity
from quota_ops.model.filter import Borders, EntityFilter
from quota_ops.model.policy import Policy
from quota_ops.model.quota import unalterable
from quota_ops.model.rows import DesiredRow, Key, StoredQuota


class Adoption(NamedTuple):
    """A stored row that is asked for, the line of Git that describes it, and why it stays out.

    `ours` is whether the ledger knew it as it stands there already.
    """

    entity: str
    key: str
    value: float
    asked: DesiredRow | None
    refusal: str | None
    ours: bool = False

    @property
    def id(self) -> Key:
        """Return entity and key."""
        return Key(self.entity, self.key)

    @property
    def adopted(self) -> bool:
        """Whether it became ours now."""
        return self.refusal is None and not self.ours


def find_adoptions(
    stored: Iterable[StoredQuota],
    desired: Iterable[DesiredRow],
    policy: Policy,
    wanted: EntityFilter | None,
) -> Iterator[Adoption]:
    """The rows of the entities that fit; without a filter every row that Git describes.

    A row that Git does not describe is cleared once it is ours, so it has to be named.
    """
    asked = {row.id: row for row in desired}
    scope, protect = Borders(policy.scope), Borders(policy.protect)
    for entity, key, value in stored:
        described = asked.get(Key(entity.text, key))
        if described is not None if wanted is None else wanted.accepts(entity):
            refusal = why_unwritable(entity, key, scope, protect)
            yield Adoption(entity.text, key, value, described, refusal)


def why_unwritable(entity: Entity, key: str, scope: Borders, protect: Borders) -> str | None:
    """Why no plan could write the row, so that it cannot be ours; None when one could."""
    if protect.meets(entity) is not None:
        return "protected"
    if scope.meets(entity) is None:
        return "outside the scope"
    return unalterable(entity.types, key)
