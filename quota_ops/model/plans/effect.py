"""The effect of a changed quota on the limits of clients."""

from enum import StrEnum
from math import inf
from typing import Any, NamedTuple, Self

from msgspec import Struct
from msgspec.structs import asdict

from quota_ops.model.quotas.entity import IP
from quota_ops.model.quotas.quota import (
    QUOTA_KEYS,
    find_applied,
    find_change,
    find_factor,
    json_number,
)


class LimitChange(StrEnum):
    """What happens to the limit of a client."""

    NEWLY_LIMITED = "newly limited"
    NO_LONGER_LIMITED = "no longer limited"
    CUT = "cut"
    RAISED = "raised"
    MAY_GET_LESS = "may get less"
    """The limit falls while fewer clients share it: each could get all of it before."""
    MAY_GET_MORE = "may get more"
    """The limit rises while more clients share it: one could get all of it."""
    SHARED_DIFFERENTLY = "shared differently"
    SAME = "same"


MOST_SHARERS = 10
"""So many clients may have shared a limit for which each gets a lower one of its own: only a limit
that falls to less than this part of it is certainly a cut."""
LOSSES = frozenset(
    {
        LimitChange.CUT,
        LimitChange.NEWLY_LIMITED,
        LimitChange.MAY_GET_LESS,
        LimitChange.MAY_GET_MORE,
        LimitChange.SHARED_DIFFERENTLY,
    }
)
"""The changes that can take something from a client."""


class Limit(Struct, frozen=True, array_like=True):
    """The limit that applies to a client: its value, and the text of the entity that has it.

    `types` are the entity's types. Brokers count by them (KIP-257), so they show who shares the
    limit: with `user`, all client ids of a user together; with `client-id` and `user`, nobody.
    """

    value: float
    entity: str
    types: tuple[str, ...]

    def equals(self, other: Self) -> bool:
        """Return whether the value is equal, and the same clients share it."""
        return (self.value, self.types) == (other.value, other.types)


class Risk(NamedTuple):
    """The worst that a change does to the limit of a client: what the guards compare.

    It is exact: no class of clients has more. `cut` is in percent, `rise` a factor. `unlimited` is
    whether a client that has a limit would have none, and `loses` whether a client that has a user
    or a client id is cut, newly limited or shares its limit differently. `foreign` is the owner of
    the limit that a client of another owner would lose, if there is one.
    """

    cut: float = 0.0
    rise: float = 1.0
    unlimited: bool = False
    loses: bool = False
    foreign: str | None = None

    def combine(self, other: Self) -> Self:
        """Return the worst of both."""
        return type(self)(
            max(self.cut, other.cut),
            max(self.rise, other.rise),
            self.unlimited or other.unlimited,
            self.loses or other.loses,
            self.foreign or other.foreign,
        )


NO_RISK = Risk()


class ClassEffect(Struct, frozen=True, array_like=True):
    """What happens to the limit of a class of clients, which all have the same limit.

    `user` is a user as in an entity's text, `user=alice`; None for every user without a limit of
    their own. `client_id` is a client id, the first of `client_ids`, or None for every one without
    a limit of its own; then `sends_client_id` is False for clients that send none, True for all
    others, and None for both. `address` is an IP address, or None for every one without a limit of
    its own. `before` and `after` are None where no limit applies.
    """

    before: Limit | None
    after: Limit | None
    user: str | None = None
    client_id: str | None = None
    client_ids: int = 0
    sends_client_id: bool | None = None
    address: str | None = None
    more: tuple[str, ...] = ()
    """Up to two more of the client ids."""

    def change(self, key: str) -> LimitChange:
        """Return what happens; a value that exempts a client from limits counts as none.

        A client that no longer has to share a limit with others gains, and one that now has to
        loses. A lower limit is no gain for a client that shares it with others than before.
        """
        return self._compare(number_of(key, self.before), number_of(key, self.after))

    def _compare(self, before: float, after: float) -> LimitChange:
        if before == after == inf:
            return LimitChange.SAME
        if before == inf:
            return LimitChange.NEWLY_LIMITED
        if after == inf:
            return LimitChange.NO_LONGER_LIMITED
        gains, loses = self._compare_sharing()
        if after < before:
            change = LimitChange.CUT if loses or not gains else LimitChange.MAY_GET_LESS
        elif after > before:
            change = LimitChange.MAY_GET_MORE if loses else LimitChange.RAISED
        elif gains:
            change = LimitChange.SHARED_DIFFERENTLY if loses else LimitChange.RAISED
        else:
            change = LimitChange.CUT if loses else LimitChange.SAME
        return change

    def judge(self, key: str) -> Risk:
        """Return the change as the numbers that guards compare, whoever owns the limits.

        A limit that fewer clients share may be lower without being cut, but not by any factor.
        """
        before, after = number_of(key, self.before), number_of(key, self.after)
        change = self._compare(before, after)
        loses = change in LOSSES and IP not in QUOTA_KEYS[key].types
        if inf in (before, after) or not before:
            return Risk(unlimited=before < after == inf, loses=loses)
        is_deep = change is LimitChange.MAY_GET_LESS and after < before / MOST_SHARERS
        is_cut = change is LimitChange.CUT or is_deep
        cut = -find_change(before, after) if is_cut else 0.0
        return Risk(cut, find_factor(before, after) if after > before else 1.0, loses=loses)

    def is_shared_differently(self) -> bool:
        """Return whether limits apply before and after, and other clients share them."""
        return any(self._compare_sharing())

    def _compare_sharing(self) -> tuple[bool, bool]:
        """Return whether clients gain, and whether they lose, because others share their limit."""
        if self.before is None or self.after is None or self.before.types == self.after.types:
            return False, False
        before, after = set(self.before.types), set(self.after.types)
        return bool(after - before), bool(before - after)


class Effect(Struct, frozen=True, array_like=True):
    """What a changed quota does: the classes of clients that it applied to, or will apply to.

    A quota that is removed also has the classes that it would apply to if it stayed. Without any
    class, another limit comes first for each of its clients, before and after.
    `own_users`, `own_client_ids` and `own_addresses` are the numbers of those with a limit of their
    own, which the change does not concern. `between` is the number of further client ids whose
    defaults are between those of `classes`, the highest and the lowest. `own` names
    up to three users, client ids and addresses of those numbers, as in an entity's text.
    `partly_own` is the number of users whose limit of their own is for clients with a client id
    only: their other clients are in the class of those without one. `partly` names up to three.
    """

    classes: tuple[ClassEffect, ...]
    own_users: int = 0
    own_client_ids: int = 0
    own_addresses: int = 0
    between: int = 0
    own: tuple[str, ...] = ()
    partly_own: int = 0
    partly: tuple[str, ...] = ()
    risk: Risk = NO_RISK

    def is_evident(self, key: str) -> bool:
        """Return whether the values before and after already say everything.

        They do for a limit that changes, or is the first one, of clients that the row names. That a
        removed limit leaves none does not show.
        """
        others = self.own_users, self.own_client_ids, self.own_addresses, self.between
        if len(self.classes) != 1 or any(others):
            return False
        effect = self.classes[0]
        if self.risk not in (NO_RISK, effect.judge(key)):  # none: it restores what was verified
            return False
        is_named = effect.sends_client_id is None and (effect.user or effect.address) is not None
        if not is_named or effect.after is None:
            return False
        if effect.before is None:
            return effect.change(key) is LimitChange.NEWLY_LIMITED
        return effect.before.entity == effect.after.entity

    def concerns_nobody(self, key: str) -> bool:
        """Return whether no client gets another limit, as far as client ids were examined."""
        changes = (clients.change(key) for clients in self.classes)
        return not self.between and all(change is LimitChange.SAME for change in changes)

    def cuts(self, key: str) -> bool:
        """Return whether it cuts the limit of a class."""
        return any(client_class.change(key) is LimitChange.CUT for client_class in self.classes)

    def as_json(self, key: str) -> dict[str, Any]:
        """Return the effect on limits of `key` as JSON values; each class has its `change` too."""
        classes = [
            asdict(client_class)
            | {"before": _limit_json(client_class.before), "after": _limit_json(client_class.after)}
            | {"change": client_class.change(key)}
            for client_class in self.classes
        ]
        return asdict(self) | {"classes": classes, "risk": self.risk._asdict()}


def _limit_json(limit: Limit | None) -> dict[str, Any] | None:
    if limit is None:
        return None
    return {"value": json_number(limit.value), "entity": limit.entity}


def number_of(key: str, limit: Limit | None) -> float:
    """Return the value of a limit; infinity if it limits nobody."""
    return inf if limit is None else find_applied(key, limit.value)
