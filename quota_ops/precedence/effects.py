"""The effects of changed quotas on classes of clients, without a list of the clients.

The levels of a broker's lookup divide all possible clients into finitely many classes: each user
that has a limit or any other one, with each client id that has a limit, any other one, or none. All
clients of a class have the same limit. Only classes that a changed quota may concern are examined.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from heapq import nsmallest
from itertools import islice

from quota_ops.model.effect import ClassEffect, Effect, Limit
from quota_ops.model.entity import IP
from quota_ops.model.quota import QUOTA_KEYS
from quota_ops.model.rows import Key
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
"""How many groups of client ids with equal defaults are examined for each changed user."""


def find_effects(
    stored: Iterable[tuple[str, str, float]], changes: Mapping[Key, Change]
) -> dict[Key, Effect]:
    """Return the effect of each change, given all stored quotas as (entity, key, value).

    A change has none if its key or an entity type is not one of Apache Kafka's: how a broker looks
    it up is not known.
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
    effects = {key: _Effects(ChangedLimits(quotas)) for key, quotas in by_key.items()}
    return {
        one: effect
        for one in changes
        if one.key in effects and (effect := effects[one.key].find(one.entity)) is not None
    }


class _Effects:
    """The effects of changes on the limits of one key."""

    def __init__(self, limits: ChangedLimits) -> None:
        self._limits = limits
        self._groups: dict[int, list[dict[str, Sides]]] = {}

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
        one = ClassEffect(sides.before, sides.after, user, client_id, 1)
        classes = (one,) if sides.come_from(entity) else ()
        if user:
            return Effect(classes)
        pairs = self._limits.users_of.get(client_id, set())
        own = len(self._limits.own_users) + len(pairs - self._limits.own_users)
        return Effect(classes, own, own=_first({*_first(pairs), *self._first_own_users}))

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
        groups = [((one,), 1, limits.decide(user, one, entity)) for one in own_ids]
        unexamined = 0
        if user and others.come_from(entity) and _is_anothers(others, user):
            own_sides = limits.decide(user, None, entity, levels=limits.own_levels)
            falls_back = 0 if own_sides.before is None else 1
            defaults = list(islice(self._list_default_groups(own_ids, falls_back), MOST_GROUPS))
            groups += [(some, count, own_sides.fall_back(sides)) for some, count, sides in defaults]
            unexamined = self._count_defaults(own_ids) - sum(count for _, count, _ in defaults)
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
                one = ClassEffect(sides.before, sides.after, user, some[0], count, more=some[1:])
                found[summary] = one
            else:
                more = (*same.more, *some)[: MOST_NAMES - 1]
                found[summary] = same._replace(client_ids=same.client_ids + count, more=more)
        if found:  # client ids with the limits of any other one are no class of their own
            found.pop(others.summarize(entity), None)
        classes += found.values()
        users = 0 if user else len(limits.own_users)
        return Effect(tuple(classes), users, own, 0, unexamined, tuple(named))

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
            return Effect(classes, own_addresses=len(own), own=_first(own))
        return Effect((ClassEffect(before, after, address=address),))

    def _count_defaults(self, but: Mapping[str, None]) -> int:
        """Return how many client ids have a default, without some."""
        defaults = self._limits.own_ids.get(None, {})
        return len(defaults) - sum(one in defaults for one in but)

    def _list_default_groups(
        self, but: Mapping[str, None], side: int
    ) -> Iterator[tuple[tuple[str, ...], int, Sides]]:
        """Yield up to three client ids with equal defaults, how many there are, and the defaults.

        They are equal on one side, 0 for before and 1 for after: on the other side, a changed user
        has a limit of their own. The largest groups come first, without the client ids in `but`.
        """
        if side not in self._groups:
            groups: dict[tuple[object, ...] | None, dict[str, Sides]] = defaultdict(dict)
            for one in self._limits.own_ids.get(None, {}):
                sides = self._limits.decide(None, one)
                limit = sides[side]
                groups[limit and (limit.value, limit.types)][one] = sides
            self._groups[side] = sorted(groups.values(), key=len, reverse=True)
        for group in self._groups[side]:
            count = len(group) - sum(one in group for one in but)
            if some := tuple(islice((one for one in group if one not in but), MOST_NAMES)):
                yield some, count, group[some[0]]


def _is_anothers(sides: Sides, user: str) -> bool:
    """Return whether no limit, or that of others too, applies to a user before or after."""
    return any(not one or user not in one.entity for one in sides[:2])


def _first(names: Iterable[str]) -> tuple[str, ...]:
    """Return the first of some names, by name."""
    return tuple(nsmallest(MOST_NAMES, names))


def _limit(value: float | None, entity: str) -> Limit | None:
    return None if value is None else Limit(value, entity, (IP,))
