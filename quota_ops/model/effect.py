"""The effect of a changed quota on the limits of clients."""

from enum import StrEnum
from math import inf, isfinite
from typing import Any, NamedTuple

from quota_ops.model.quota import QUOTA_KEYS, json_number


class LimitChange(StrEnum):
    """What happens to the limit of a client."""

    NEWLY_LIMITED = "newly limited"
    NO_LONGER_LIMITED = "no longer limited"
    CUT = "cut"
    RAISED = "raised"
    SAME = "same"


class Limit(NamedTuple):
    """The limit that applies to a client: its value, and the text of the entity that has it."""

    value: float
    entity: str


class ClassEffect(NamedTuple):
    """What happens to the limit of a class of clients, all of which have the same limit.

    `user` is a user as in an entity's text, `user=alice`; None for every user without a limit of
    their own. `client_id` is a client id, the first of `client_ids`, or None for every one without
    a limit of its own; of `nameless` clients, none is sent. `address` is an IP address, or None for
    every one without a limit of its own. `before` and `after` are None where no limit applies.
    """

    before: Limit | None
    after: Limit | None
    user: str | None = None
    client_id: str | None = None
    client_ids: int = 0
    nameless: bool = False
    address: str | None = None

    def change(self, key: str) -> LimitChange:
        """Return what happens; a value that exempts a client from limits counts as none."""
        before, after = _number(key, self.before), _number(key, self.after)
        if before == after:
            return LimitChange.SAME
        if before == inf:
            return LimitChange.NEWLY_LIMITED
        if after == inf:
            return LimitChange.NO_LONGER_LIMITED
        return LimitChange.CUT if after < before else LimitChange.RAISED


class Effect(NamedTuple):
    """What a changed quota does: the classes of clients that it applied to, or will apply to.

    Without any class, another limit comes first for each of its clients, before and after.
    `own_users`, `own_client_ids` and `own_addresses` are the numbers of those with a limit of their
    own, which the change does not concern. `unexamined` is the number of further client ids with
    defaults of their own, each of which the change may concern.
    """

    classes: tuple[ClassEffect, ...]
    own_users: int = 0
    own_client_ids: int = 0
    own_addresses: int = 0
    unexamined: int = 0

    def is_evident(self) -> bool:
        """Return whether the values before and after already say everything."""
        if len(self.classes) != 1 or any(self[1:]):
            return False
        one = self.classes[0]
        is_named = not one.nameless and (one.user or one.address) is not None
        return is_named and len({limit.entity for limit in one[:2] if limit}) == 1

    def as_json(self, key: str) -> dict[str, Any]:
        """Return the effect on limits of `key` as JSON values; each class has its `change` too."""
        classes = [
            one._asdict()
            | {"before": _limit_json(one.before), "after": _limit_json(one.after)}
            | {"change": one.change(key)}
            for one in self.classes
        ]
        return self._asdict() | {"classes": classes}


def _limit_json(limit: Limit | None) -> dict[str, Any] | None:
    return limit and {"value": json_number(limit.value), "entity": limit.entity}


def _number(key: str, limit: Limit | None) -> float:
    if limit is None or not isfinite(limit.value):
        return inf
    known = QUOTA_KEYS.get(key)
    return inf if known and limit.value >= known.unlimited else limit.value
