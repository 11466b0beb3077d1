"""The effects of changed quotas on classes of clients, without a list of the clients.

The levels of a broker's lookup divide all possible clients into finitely many classes: each user
that has a limit or any other one, with each client id that has a limit, any other one, or none. All
clients of a class have the same limit. Only classes that a changed quota may concern are examined.
"""

from collections import defaultdict
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from heapq import nsmallest
from itertools import islice
from math import fsum, inf
from typing import NamedTuple

from msgspec.structs import replace

from quota_ops.model.plans.effect import (
    NO_RISK,
    ClassEffect,
    Effect,
    Limit,
    LimitChange,
    Risk,
    number_of,
)
from quota_ops.model.quotas.difference import Difference
from quota_ops.model.quotas.entity import IP, USER, Entity
from quota_ops.model.quotas.owners import OwnerIndex
from quota_ops.model.quotas.rows import Key
from quota_ops.precedence.changed_limits import (
    ANY_CLIENT_ID,
    ANY_IP,
    ANY_USER,
    NO_CLIENT_ID,
    NOT_STORED,
    Change,
    ChangedLimits,
    Neighbors,
    Sides,
    list_neighbors,
)

MOST_NAMES = 3
"""How many clients of each kind are named; the others are counted."""

_NOBODY = {ANY_USER, ANY_CLIENT_ID, f"{ANY_CLIENT_ID},{ANY_USER}", ANY_IP}
"""The entities that name no client."""
Owners = Mapping[tuple[str, str], str | None]
"""The owner of each quota, by entity and key."""


class Ownership(NamedTuple):
    """Who owns the quotas before the changes, who makes each change, and the owners by policy."""

    before: Owners
    after: Owners
    owners: OwnerIndex


def find_write_effects(
    stored: Iterable[tuple[str, str, float]],
    writes: Sequence[Difference],
    ownership: Ownership | None = None,
) -> dict[Key, Effect]:
    """Return the effect of each write of a plan or an alter, as `find_effects` does.

    The classes have the limits that are stored. The risks compare with the limits that clients have
    once every value that was last verified is restored, and every temporary value that ended has
    returned: a write that only does so has none. A temporary value that is written now has the risk
    of what it returns to as well, because no guard judges the return. Client ids that leave the
    limit which they shared rise together.
    """
    changes = {row.id: Change(row.before, row.target) for row in writes}
    agreed = {row.id: row.target for row in writes if row.is_agreed}
    later = {
        row.id: Change(row.before, row.returns_to or None)
        for row in writes
        if row.returns_to is not None and row.id not in agreed
    }
    near = list_neighbors(stored, changes)
    if not (agreed or later):
        return _add_up_pairs(find_effects(near, changes, ownership))
    others = {row: change for row, change in changes.items() if row not in agreed}
    settled = {row: Change(value, value) for row, value in agreed.items()}
    risks: dict[Key, Risk] = {}
    for end in (others, others | later) if later else (others,):
        for row, effect in _add_up_pairs(find_effects(near, end, ownership, settled)).items():
            risks[row] = risks.get(row, NO_RISK).combine(effect.risk)
    return {
        row: replace(effect, risk=risks.get(row, NO_RISK))
        for row, effect in find_effects(near, changes).items()
    }


def _add_up_pairs(effects: Mapping[Key, Effect]) -> dict[Key, Effect]:
    """Return the effects; client ids that leave the limit of one user together rise together.

    They shared that limit, and each has one of its own then: the user may have the sum of them.
    """
    together: dict[tuple[str, str], dict[Key, float]] = defaultdict(dict)
    for row, effect in effects.items():
        for clients in effect.classes:
            before, after = clients.before, clients.after
            is_pair = after is not None and after.entity == row.entity and len(after.types) > 1
            if before and after and is_pair and clients.user and before.types == (USER,):
                shared, own = number_of(row.key, before), number_of(row.key, after)
                rise = 0.0 if inf in (shared, own) or not shared else own / shared
                together[clients.user, row.key][row] = rise
    rises = {row: fsum(rows.values()) for rows in together.values() for row in rows}
    added = {
        row: replace(effects[row], risk=effects[row].risk.combine(Risk(rise=rise)))
        for row, rise in rises.items()
    }
    return {**effects, **added}


def find_effects(
    near: Neighbors,
    changes: Mapping[Key, Change],
    ownership: Ownership | None = None,
    settled: Mapping[Key, Change] | None = None,
) -> dict[Key, Effect]:
    """Return the effect of each change, with other values in place of the stored ones of `settled`.

    A change has none if its key or an entity type is not one of Apache Kafka's: how a broker looks
    it up is not known. Without `ownership` no client is another owner's.
    """
    by_key = {key: dict(quotas) for key, quotas in near.quotas.items()}
    for (entity, key), change in {**(settled or {}), **changes}.items():
        if key in by_key:
            by_key[key][entity] = change
    effects = {
        key: _Effects(key, ChangedLimits(quotas, near.users[key]), ownership)
        for key, quotas in by_key.items()
    }
    return {
        change: effect
        for change in changes
        if change.key in effects and (effect := effects[change.key].find(change.entity)) is not None
    }


class _Effects:
    """The effects of changes on the limits of one key."""

    def __init__(self, key: str, limits: ChangedLimits, ownership: Ownership | None) -> None:
        self._key = key
        self._limits = limits
        self._ownership = ownership
        self._defaults: dict[int, _Defaults] = {}

    def find(self, entity: str) -> Effect | None:
        """Return the effect of a changed entity; None if one of its types is unknown."""
        parts = self._limits.parts.get(entity)
        if parts is None:
            return None
        if parts.address is not None:
            return self._find_address_effect(entity, parts.address)
        client_id = parts.client_id
        if client_id == NO_CLIENT_ID:
            return Effect(())
        user = None if parts.user == ANY_USER else parts.user
        if client_id is None or client_id == ANY_CLIENT_ID:
            return self._find_many_effect(entity, user, needs_client_id=client_id is not None)
        return self._find_client_effect(entity, user, client_id)

    def _find_client_effect(self, entity: str, user: str | None, client_id: str) -> Effect:
        """Return the effect of a quota for one client id, of a user or of any other user."""
        sides = self._limits.decide(user, client_id, entity)
        effect = ClassEffect(sides.before, sides.after, user, client_id, 1)
        classes = (effect,) if sides.come_from(entity) else ()
        risk = self._judge(entity, classes)
        if user:
            return Effect(classes, risk=risk)
        pairs = self._limits.find_pair_users(client_id)
        count = len(self._limits.own_users) + len(pairs - self._limits.own_users)
        named = _first({*_first(pairs), *self._first_own_users})
        return Effect(classes, count, own=named, risk=risk)

    def _judge(self, entity: str, classes: Iterable[ClassEffect]) -> Risk:
        """Return the worst that a changed entity does to these classes."""
        worst = NO_RISK
        for client_class in classes:
            if client_class.before == client_class.after:
                continue
            risk = client_class.judge(self._key)
            if (foreign := self._find_foreign_owner(entity, client_class)) is not None:
                risk = risk._replace(foreign=foreign)
            worst = risk if worst is NO_RISK else worst.combine(risk)
        return worst

    def _find_foreign_owner(self, entity: str, effect: ClassEffect) -> str | None:
        """Return the owner of the limit that a class would lose to another owner's quota.

        A default belongs to nobody: to be taken out of it is what it is for. A user may be limited
        by a quota of their client id, which names no user: then only a lower limit counts.
        """
        limit, ownership = effect.before, self._ownership
        if limit is None or ownership is None or limit.entity in _NOBODY:
            return None
        owner = ownership.before.get((limit.entity, self._key))
        changer = ownership.after.get((entity, self._key))
        if owner is None or owner == changer or effect.change(self._key) is LimitChange.SAME:
            return None
        is_named = effect.user is None or self._limits.parts[limit.entity].user == effect.user
        if not is_named and effect.after is not None and effect.after.value >= limit.value:
            return None
        client = effect.user or effect.client_id or effect.address
        if client and changer and ownership.owners.owners:
            by_policy = ownership.owners.find_owner(Entity.parse(client))
            return None if by_policy == changer else owner
        return owner

    @cached_property
    def _first_own_users(self) -> tuple[str, ...]:
        return _first(self._limits.own_users)

    def _find_many_effect(self, entity: str, user: str | None, *, needs_client_id: bool) -> Effect:
        """Return the effect of a quota for all client ids of a user, or of any other user."""
        limits = self._limits
        others = limits.decide(user, None, entity)
        unnamed: list[tuple[Sides, bool | None]] = [(others, True if needs_client_id else None)]
        if not needs_client_id and limits.has_client_id_defaults:
            without = limits.decide(user, None, entity, sends_client_id=False)
            if without.summarize(entity) != others.summarize(entity):
                unnamed = [(others, True), (without, False)]
        classes = [
            ClassEffect(sides.before, sides.after, user, sends_client_id=sends)
            for sides, sends in unnamed
            if sides.come_from(entity)
        ]
        own_ids = limits.own_ids.get(user, {})
        groups: list[tuple[tuple[str, ...], int, Sides]]
        groups = [
            ((client_id,), 1, limits.decide(user, client_id, entity)) for client_id in own_ids
        ]
        # `found` merges equal limits of several quotas, which may have several owners.
        judged = [
            *classes,
            *(
                ClassEffect(sides.before, sides.after, user, ids[0])
                for ids, _, sides in groups
                if sides.come_from(entity)
            ),
        ]
        between = 0
        side = _find_falling_side(others, user) if user and others.come_from(entity) else None
        if user and side is not None and (defaults := self._rank_defaults(side)).ids:
            shown = list(defaults.list_extremes(own_ids))
            between = _count(defaults.ids, own_ids) - sum(count for _, count, _ in shown)
            own_sides = limits.decide_own(user, None, entity)
            groups += [(ids, count, own_sides.fall_back(sides)) for ids, count, sides in shown]
            extremes = [(ids[0], sides) for ids, _, sides in shown]
            for client_id, sides in (*extremes, *defaults.list_owned(own_ids)):
                both = own_sides.fall_back(sides)
                judged.append(ClassEffect(both.before, both.after, user, client_id))
        partly = set() if user or needs_client_id else limits.partly_own
        users = set() if user else limits.own_users - partly
        partly = partly.difference(limits.parts)  # the row of a user's own quota says it of them
        own, named = 0, [*_first(users)]
        found: dict[tuple[object, ...], ClassEffect] = {}
        for some, count, sides in groups:
            if not sides.come_from(entity):
                own += count
                named += some[: max(0, MOST_NAMES - own + count)]
                continue
            summary = sides.summarize(entity)
            same = found.get(summary)
            if same is None:
                effect = ClassEffect(sides.before, sides.after, user, some[0], count, more=some[1:])
                found[summary] = effect
            else:
                more = (*same.more, *some)[: MOST_NAMES - 1]
                found[summary] = replace(same, client_ids=same.client_ids + count, more=more)
        if found:  # client ids with the limits of any other one are no class of their own
            found.pop(others.summarize(entity), None)
        classes += found.values()
        risk = self._judge(entity, judged)
        names = tuple(named), len(partly), _first(partly)
        return Effect(tuple(classes), len(users), own, 0, between, *names, risk)

    def _find_address_effect(self, entity: str, address: str) -> Effect:
        addresses = self._limits.addresses
        own, other = addresses[entity], addresses.get(ANY_IP, NOT_STORED)
        before = _limit(own.before, entity) or _limit(other.before, ANY_IP)
        after = _limit(own.after, entity) or _limit(other.after, ANY_IP)
        if address == ANY_IP:
            named = self._limits.own_addresses
            classes = (ClassEffect(before, after),)
            risk = self._judge(entity, classes)
            return Effect(classes, own_addresses=len(named), own=_first(named), risk=risk)
        classes = (ClassEffect(before, after, address=address),)
        return Effect(classes, risk=self._judge(entity, classes))

    def _rank_defaults(self, side: int) -> "_Defaults":
        """Return the client ids that have a default of their own on a side, 0 before or 1 after."""
        if side not in self._defaults:
            ranked = []
            for client_id in self._limits.own_ids.get(None, ()):
                sides = self._limits.decide(None, client_id)
                limit = sides.after if side else sides.before
                if limit is not None and limit.entity not in _NOBODY:
                    owned = (limit.entity, self._key)
                    owner = self._ownership and self._ownership.before.get(owned)
                    number = number_of(self._key, limit)
                    ranked.append(_Default(-number, limit.types, client_id, sides, owner))
            self._defaults[side] = _Defaults(sorted(ranked))
        return self._defaults[side]


class _Default(NamedTuple):
    """A client id whose limit, for users without one of their own, names the client id."""

    order: float
    types: tuple[str, ...]
    client_id: str
    sides: Sides
    owner: str | None


class _Defaults:
    """The client ids with defaults of their own, from the highest limit to the lowest."""

    def __init__(self, ranked: Sequence[_Default]) -> None:
        self.ids = {default.client_id for default in ranked}
        groups: dict[tuple[float, tuple[str, ...]], dict[str, Sides]] = defaultdict(dict)
        for default in ranked:
            groups[default[:2]][default.client_id] = default.sides
        kinds: dict[tuple[object, ...], list[dict[str, Sides]]] = defaultdict(list)
        for (order, types), group in groups.items():
            kinds[order > -inf, types].append(group)
        self._kinds = list(kinds.values())
        """The groups of client ids with equal limits, of each way in which clients share them."""
        self._owned = [default for default in ranked if default.owner is not None]
        self._next_owner = [len(self._owned)] * len(self._owned)
        """The place of the next client id with another owner."""
        for at in range(len(self._owned) - 2, -1, -1):
            is_same = self._owned[at].owner == self._owned[at + 1].owner
            self._next_owner[at] = self._next_owner[at + 1] if is_same else at + 1

    def list_extremes(self, but: Collection[str]) -> Iterator[tuple[tuple[str, ...], int, Sides]]:
        """Yield the highest and the lowest limit of each way to share one.

        Each with up to three of its client ids, and how many there are, without those in `but`.
        """
        for groups in self._kinds:
            ends = {}
            for way in (groups, reversed(groups)):
                for group in way:
                    others = (client_id for client_id in group if client_id not in but)
                    if ids := tuple(islice(others, MOST_NAMES)):
                        ends[ids] = ids, _count(group, but), group[ids[0]]
                        break
            yield from ends.values()

    def list_owned(self, but: Container[str]) -> Iterator[tuple[str, Sides]]:
        """Yield the highest limits of two owners: one of them is another owner's than the change.

        Without the client ids in `but`.
        """
        at, first = 0, None
        while at < len(self._owned):
            default = self._owned[at]
            if default.client_id in but:
                at += 1
            elif default.owner == first:
                at = self._next_owner[at]
            else:
                yield default.client_id, default.sides
                if first is not None:
                    return
                first, at = default.owner, self._next_owner[at]


def _count(ids: Collection[str], but: Iterable[str]) -> int:
    return len(ids) - sum(client_id in ids for client_id in but)


def _find_falling_side(sides: Sides, user: str) -> int | None:
    """Return the side, 0 before or 1 after, on which a user has no limit of their own."""
    for side, limit in enumerate((sides.before, sides.after)):
        if limit is None or user not in limit.entity:
            return side
    return None


def _first(names: Collection[str]) -> tuple[str, ...]:
    """Return the first of some names, by name."""
    return tuple(nsmallest(MOST_NAMES, names)) if names else ()


def _limit(value: float | None, entity: str) -> Limit | None:
    return None if value is None else Limit(value, entity, (IP,))
