"""The effects of changed quotas on classes of clients, without a list of the clients.

The levels of a broker's lookup divide all possible clients into finitely many classes: each user
that has a limit or any other one, with each client id that has a limit, any other one, or none. All
clients of a class have the same limit. Only classes that a changed quota may concern are examined.
"""

from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from heapq import nsmallest
from itertools import islice
from math import fsum, inf
from typing import NamedTuple

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
from quota_ops.model.quotas.quota import QUOTA_KEYS
from quota_ops.model.quotas.rows import Key
from quota_ops.precedence.changed_limits import (
    ANY_CLIENT_ID,
    ANY_IP,
    ANY_USER,
    NO_CLIENT_ID,
    Change,
    ChangedLimits,
    Sides,
)

MOST_NAMES = 3
"""How many clients of each kind are named; the others are counted."""
MOST_GROUPS = 20
"""How many groups of client ids with equal defaults are listed for each changed user."""

_NOBODY = {ANY_USER, ANY_CLIENT_ID, f"{ANY_CLIENT_ID},{ANY_USER}", ANY_IP}
"""The entities that name no client."""
Owners = Mapping[Key, str | None]
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
    of what it returns to as well, because no guard judges the return.
    """
    values = list(stored)
    changes = {row.id: Change(row.before, row.target) for row in writes}
    agreed = {row.id: row.target for row in writes if row.restores or row.is_return}
    later = {
        row.id: Change(row.before, row.returns_to or None)
        for row in writes
        if row.returns_to is not None and row.id not in agreed
    }
    if not (agreed or later):
        return find_effects(values, changes, ownership)
    others = {row: change for row, change in changes.items() if row not in agreed}
    verified = {Key(entity, key): value for entity, key, value in values} | agreed
    undone = [(*row, value) for row, value in verified.items() if value is not None]
    risks = {row: effect.risk for row, effect in find_effects(undone, others, ownership).items()}
    if later:
        for row, effect in find_effects(undone, others | later, ownership).items():
            risks[row] = risks[row].combine(effect.risk)
    return {
        row: effect._replace(risk=risks.get(row, NO_RISK))
        for row, effect in find_effects(values, changes).items()
    }


def add_up_pairs(effects: Mapping[Key, Effect], writes: Iterable[Difference]) -> dict[Key, Effect]:
    """Return the effects; client ids that leave the limit of one user together rise together.

    They shared that limit, and each has one of its own then: the user may have the sum of them.
    """
    judged = {row.id for row in writes if not (row.restores or row.is_return)}
    together: dict[tuple[str, str], dict[Key, float]] = defaultdict(dict)
    for row in judged & effects.keys():
        for clients in effects[row].classes:
            before, after = clients.before, clients.after
            shared, own = number_of(row.key, before), number_of(row.key, after)
            is_pair = after is not None and len(after.types) > 1
            if clients.user and before and before.types == (USER,) and is_pair and shared:
                together[clients.user, row.key][row] = 0.0 if inf in (shared, own) else own / shared
    rises = {row: fsum(rows.values()) for rows in together.values() for row in rows if rows}
    return {
        row: effect._replace(risk=effect.risk._replace(rise=max(effect.risk.rise, rises[row])))
        if row in rises
        else effect
        for row, effect in effects.items()
    }


def find_effects(
    stored: Iterable[tuple[str, str, float]],
    changes: Mapping[Key, Change],
    ownership: Ownership | None = None,
) -> dict[Key, Effect]:
    """Return the effect of each change, given all stored quotas as (entity, key, value).

    A change has none if its key or an entity type is not one of Apache Kafka's: how a broker looks
    it up is not known. Without `ownership` no client is another owner's.
    """
    by_key: dict[str, dict[str, Change]] = {key: {} for _, key in changes if key in QUOTA_KEYS}
    if not by_key:
        return {}
    for (entity, key), change in changes.items():
        if key in by_key:
            by_key[key][entity] = change
    for entity, key, value in stored:
        if key in by_key and entity not in by_key[key]:
            by_key[key][entity] = Change(value, value)
    effects = {
        key: _Effects(key, ChangedLimits(quotas), ownership) for key, quotas in by_key.items()
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
        self._groups: dict[int, list[dict[str, Sides]]] = {}
        self._ranked: dict[int, list[_Ranked]] = {}

    def find(self, entity: str) -> Effect | None:
        """Return the effect of a changed entity; None if one of its types is unknown."""
        parts = self._limits.parts.get(entity)
        if parts is None:
            return None
        client_id = parts.client_id
        if parts.address is not None:
            return self._find_address_effect(entity, parts.address)
        user = None if parts.user == ANY_USER else parts.user
        if client_id is None or client_id == ANY_CLIENT_ID:
            return self._find_many_effect(entity, user, needs_client_id=client_id is not None)
        if client_id == NO_CLIENT_ID:
            return Effect(())
        sides = self._limits.decide(user, client_id, entity)
        effect = ClassEffect(sides.before, sides.after, user, client_id, 1)
        classes = (effect,) if sides.come_from(entity) else ()
        risk = self._judge(entity, classes)
        if user:
            return Effect(classes, risk=risk)
        pairs = self._limits.users_of.get(client_id, set())
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
        owner = ownership.before.get(self._at(limit))
        changer = ownership.after.get(Key(entity, self._key))
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
        unexamined = 0
        if user and others.come_from(entity) and _is_anothers(others, user):
            own_sides = limits.decide(user, None, entity, levels=limits.own_levels)
            falls_back = 0 if own_sides.before is None else 1
            defaults = list(islice(self._list_default_groups(own_ids, falls_back), MOST_GROUPS))
            groups += [(some, count, own_sides.fall_back(sides)) for some, count, sides in defaults]
            unexamined = self._count_defaults(own_ids) - sum(count for _, count, _ in defaults)
            for client_id, default_sides in self._list_extremes(own_ids, falls_back):
                sides = own_sides.fall_back(default_sides)
                judged.append(ClassEffect(sides.before, sides.after, user, client_id))
        own, named = 0, [] if user else list(self._first_own_users)
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
                found[summary] = same._replace(client_ids=same.client_ids + count, more=more)
        if found:  # client ids with the limits of any other one are no class of their own
            found.pop(others.summarize(entity), None)
        classes += found.values()
        users = 0 if user else len(limits.own_users)
        risk = self._judge(entity, judged)
        return Effect(tuple(classes), users, own, 0, unexamined, tuple(named), risk)

    def _find_address_effect(self, entity: str, address: str) -> Effect:
        addresses = self._limits.addresses
        before, after = (
            _limit(own, entity) or _limit(other, ANY_IP)
            for own, other in zip(
                addresses[entity], addresses.get(ANY_IP, Change(None, None)), strict=True
            )
        )
        if address == ANY_IP:
            own = self._limits.own_addresses
            classes = (ClassEffect(before, after),)
            risk = self._judge(entity, classes)
            return Effect(classes, own_addresses=len(own), own=_first(own), risk=risk)
        classes = (ClassEffect(before, after, address=address),)
        return Effect(classes, risk=self._judge(entity, classes))

    def _count_defaults(self, but: Mapping[str, None]) -> int:
        """Return how many client ids have a default, without some."""
        defaults = self._limits.own_ids.get(None, {})
        return len(defaults) - sum(client_id in defaults for client_id in but)

    def _list_default_groups(
        self, but: Mapping[str, None], side: int
    ) -> Iterator[tuple[tuple[str, ...], int, Sides]]:
        """Yield up to three client ids with equal defaults, how many there are, and the defaults.

        They are equal on one side, 0 for before and 1 for after: on the other side, a changed user
        has a limit of their own. The largest groups come first, without the client ids in `but`.
        """
        if side not in self._groups:
            groups: dict[tuple[object, ...] | None, dict[str, Sides]] = defaultdict(dict)
            for client_id in self._limits.own_ids.get(None, {}):
                sides = self._limits.decide(None, client_id)
                limit = sides[side]
                groups[limit and (limit.value, limit.types)][client_id] = sides
            self._groups[side] = sorted(groups.values(), key=len, reverse=True)
        for group in self._groups[side]:
            count = len(group) - sum(client_id in group for client_id in but)
            if some := tuple(
                islice((client_id for client_id in group if client_id not in but), MOST_NAMES)
            ):
                yield some, count, group[some[0]]

    def _list_extremes(self, but: Container[str], side: int) -> Iterator[tuple[str, Sides]]:
        """Yield the client ids with the highest and the lowest default on a side, without some.

        They are those of each way in which clients share a limit, and without a limit. Of two
        owners, it yields the highest default of each: one of them is another owner's.
        """
        if side not in self._ranked:
            self._ranked[side] = self._rank_defaults(side)
        for ids, owned in self._ranked[side]:
            for some in (ids, reversed(ids)):
                yield from islice((client for client in some if client[0] not in but), 1)
            yield from owned.list_highest(but)

    def _rank_defaults(self, side: int) -> "list[_Ranked]":
        """Return the client ids with defaults, the highest first, by how clients share them."""
        by_sharing: dict[object, list[_Default]] = defaultdict(list)
        for client_id in self._limits.own_ids.get(None, {}):
            sides = self._limits.decide(None, client_id)
            limit = sides[side]
            is_limited = number_of(self._key, limit) < inf
            by_sharing[is_limited, limit and limit.types].append((client_id, sides))
        ranked: list[_Ranked] = []
        for ids in by_sharing.values():
            ids.sort(key=lambda client: number_of(self._key, client[1][side]), reverse=True)
            owned = [
                (client, owner)
                for client in ids
                if (limit := client[1][side]) and limit.entity not in _NOBODY
                if self._ownership and (owner := self._ownership.before.get(self._at(limit)))
            ]
            ranked.append((ids, _Owned(owned)))
        return ranked

    def _at(self, limit: Limit) -> Key:
        return Key(limit.entity, self._key)


_Default = tuple[str, Sides]
"""A client id, and its limits for users without one of their own."""


class _Owned:
    """Client ids from the highest to the lowest limit, with the owner of each limit."""

    def __init__(self, ids: Sequence[tuple[_Default, str]]) -> None:
        self._ids = ids
        self._next_owner = [len(ids)] * len(ids)
        """The place of the next client id with another owner."""
        for at in range(len(ids) - 2, -1, -1):
            is_same = ids[at][1] == ids[at + 1][1]
            self._next_owner[at] = self._next_owner[at + 1] if is_same else at + 1

    def list_highest(self, but: Container[str]) -> Iterator[_Default]:
        """Yield the highest of two owners, without some client ids."""
        at, first = 0, None
        while at < len(self._ids):
            client, owner = self._ids[at]
            if client[0] in but:
                at += 1
            elif first is None:
                yield client
                first, at = owner, self._next_owner[at]
            elif owner == first:
                at = self._next_owner[at]
            else:
                yield client
                return


_Ranked = tuple[Sequence[_Default], _Owned]


def _is_anothers(sides: Sides, user: str) -> bool:
    """Return whether no limit, or that of others too, applies to a user before or after."""
    return any(not limit or user not in limit.entity for limit in sides[:2])


def _first(names: Iterable[str]) -> tuple[str, ...]:
    """Return the first of some names, by name."""
    return tuple(nsmallest(MOST_NAMES, names))


def _limit(value: float | None, entity: str) -> Limit | None:
    return None if value is None else Limit(value, entity, (IP,))
