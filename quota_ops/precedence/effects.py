"""The effects of changed quotas on classes of clients, without a list of the clients.

The levels of a broker's lookup divide all possible clients into finitely many classes: each user
that has a limit or any other one, with each client id that has a limit, any other one, or none. All
clients of a class have the same limit. Only classes that a changed quota may concern are examined.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from quota_ops.model.effect import ClassEffect, Effect, Limit
from quota_ops.model.entity import CLIENT_ID, DEFAULT_TEXT, IP, USER, Entity, text_of
from quota_ops.model.quota import QUOTA_KEYS
from quota_ops.model.rows import Key
from quota_ops.precedence.resolution import LEVELS

MOST_GROUPS = 20
"""How many groups of client ids with equal defaults are examined for each changed user."""

_DEFAULTS = {kind: f"{kind}={DEFAULT_TEXT}" for kind in (USER, CLIENT_ID, IP)}
_EMPTY = f'{CLIENT_ID}=""'
"""A client id that counts as none, so that no limit for it ever applies."""
_LEVELS = tuple(
    (level.types, tuple((kind, dict(level.own)[kind]) for kind in level.types)) for level in LEVELS
)
"""Of each level: its types, and its types with whether they have a name."""


class Change(NamedTuple):
    """The stored value of a quota before and after; None where it is not stored."""

    before: float | None
    after: float | None


class _Clients(NamedTuple):
    """A class of clients: parts of an entity's text, or None for any other name."""

    user: str | None
    client_id: str | None = None
    sends_client_id: bool = True


class _Sides(NamedTuple):
    """The limit of a class before and after the changes.

    `if_kept` is the limit after them if the examined quota were not removed.
    """

    before: Limit | None
    after: Limit | None
    if_kept: Limit | None

    def come_from(self, entity: str) -> bool:
        """Return whether the quota of an entity decides, or would if it were not removed."""
        return any(one is not None and one.entity == entity for one in self)


def find_effects(
    stored: Iterable[tuple[str, str, float]], changes: Mapping[Key, Change]
) -> dict[Key, Effect]:
    """Return the effect of each change, given all stored quotas as (entity, key, value).

    A change has none if its key or an entity type is not one of Apache Kafka's: how a broker looks
    it up is not known.
    """
    by_key = {key: _Quotas() for _, key in changes if key in QUOTA_KEYS}
    for (entity, key), change in changes.items():
        if key in by_key:
            by_key[key].add(entity, change)
    if not by_key:
        return {}
    for entity, key, value in stored:
        if key in by_key and (entity, key) not in changes:
            by_key[key].add(entity, Change(value, value))
    found = {key: by_key[key.key].find_effect(key.entity) for key in changes if key.key in by_key}
    return {key: effect for key, effect in found.items() if effect is not None}


class _Quotas:
    """The quotas of one key before and after, by the text of their entity."""

    def __init__(self) -> None:
        self._stored: dict[str, Change] = {}
        self._own_users: set[str] = set()
        self._own_addresses = 0
        self._own_ids: dict[str | None, dict[str, None]] = defaultdict(dict)
        """The client ids of each user's pairs and, at None, those that have a default."""
        self._users_of: dict[str, set[str]] = defaultdict(set)
        """The users of the pairs with a client id."""
        self._groups: list[dict[str, None]] | None = None

    def add(self, entity: str, change: Change) -> None:
        """Add a quota; an entity of other types than Apache Kafka's is left out."""
        parts = _split(entity)
        if parts is None or parts.get(CLIENT_ID) == _EMPTY:
            return
        self._stored[entity] = change
        user, client_id, is_kept = parts.get(USER), parts.get(CLIENT_ID), None not in change
        if client_id is not None:
            self._own_ids[user][client_id] = None
        if user is not None and is_kept:
            if client_id is None:
                self._own_users.add(user)
            else:
                self._users_of[client_id].add(user)
        self._own_addresses += is_kept and parts.get(IP) is not None

    def find_effect(self, entity: str) -> Effect | None:
        """Return the effect of an added quota; None if a type of its entity is unknown."""
        parts = _split(entity)
        if parts is None:
            return None
        if IP in parts:
            return self._find_address_effect(entity, parts[IP])
        user, client_id = parts.get(USER), parts.get(CLIENT_ID)
        if client_id is None:
            return self._find_many_effect(entity, user, needs_client_id=CLIENT_ID in parts)
        if client_id == _EMPTY:
            return Effect(())
        sides = self._decide(_Clients(user, client_id), entity)
        one = ClassEffect(sides.before, sides.after, user, client_id, 1)
        classes = (one,) if sides.come_from(entity) else ()
        own = self._own_users | self._users_of[client_id] if user is None else ()
        return Effect(classes, own_users=len(own))

    def _find_many_effect(self, entity: str, user: str | None, *, needs_client_id: bool) -> Effect:
        """Return the effect of a quota for all client ids of a user, or of any other user."""
        others = self._decide(_Clients(user), entity)
        usual = _summarize(others, entity)
        unnamed: list[tuple[_Sides, bool | None]] = [(others, True)]
        if not needs_client_id:
            without = self._decide(_Clients(user, sends_client_id=False), entity)
            is_same = _summarize(without, entity) == usual
            unnamed = [(others, None)] if is_same else [(others, True), (without, False)]
        classes = [
            ClassEffect(sides.before, sides.after, user, sends_client_id=sends)
            for sides, sends in unnamed
            if sides.come_from(entity)
        ]
        groups = [(one, 1) for one in self._own_ids[user]]
        unexamined = 0
        if (
            user
            and others.come_from(entity)
            and any(not one or user not in one.entity for one in others[:2])
        ):
            defaults = list(self._list_default_groups(self._own_ids[user]))
            groups += defaults[:MOST_GROUPS]
            unexamined = sum(count for _, count in defaults[MOST_GROUPS:])
        own = 0
        found: dict[tuple[object, ...], ClassEffect] = {}
        for client_id, count in groups:
            sides = self._decide(_Clients(user, client_id), entity)
            summary = _summarize(sides, entity)
            if not sides.come_from(entity):
                own += count
            elif summary != usual:
                first = ClassEffect(sides.before, sides.after, user, client_id)
                same = found.get(summary, first)
                found[summary] = same._replace(client_ids=same.client_ids + count)
        classes += found.values()
        return Effect(tuple(classes), 0 if user else len(self._own_users), own, 0, unexamined)

    def _find_address_effect(self, entity: str, address: str | None) -> Effect:
        default = self._stored.get(_DEFAULTS[IP], Change(None, None))
        before, after = (
            _limit(own, entity, (IP,)) or _limit(other, _DEFAULTS[IP], (IP,))
            for own, other in zip(self._stored[entity], default, strict=True)
        )
        count = 0 if address else self._own_addresses
        return Effect((ClassEffect(before, after, address=address),), own_addresses=count)

    def _list_default_groups(self, but: Mapping[str, None]) -> Iterator[tuple[str, int]]:
        """Yield one of the client ids with equal defaults, and how many they are, without some."""
        if self._groups is None:
            groups: dict[tuple[object, ...], dict[str, None]] = defaultdict(dict)
            for one in self._own_ids[None]:
                groups[_summarize(self._decide(_Clients(None, one)))][one] = None
            self._groups = sorted(groups.values(), key=len, reverse=True)
        for group in self._groups:
            count = len(group) - sum(one in group for one in but)
            if count:
                yield next(one for one in group if one not in but), count

    def _decide(self, clients: _Clients, examined: str | None = None) -> _Sides:
        """Return the limit of a class on each side: that of the first level with one.

        `examined` is the entity whose quota decides `if_kept`.
        `Limits.resolve` lists all levels of one client; a plan needs thousands of answers, so this
        only looks up texts. A property test compares the two.
        """
        names = {USER: clients.user, CLIENT_ID: clients.client_id}
        before = after = if_kept = None
        for types, parts in _LEVELS:
            if not clients.sends_client_id and CLIENT_ID in types:
                continue
            texts = [names[kind] if named else _DEFAULTS[kind] for kind, named in parts]
            entity = ",".join([one for one in texts if one])
            stored = self._stored.get(entity) if None not in texts else None
            if stored is not None:
                before = before or _limit(stored.before, entity, types)
                if entity == examined and after is None and stored.after is None:
                    if_kept = _limit(stored.before, entity, types)
                after = after or _limit(stored.after, entity, types)
        return _Sides(before, after, if_kept or after)


def _split(entity: str) -> dict[str, str | None] | None:
    """Return the parts of an entity's text by type, and None for a default.

    None if a type is not Apache Kafka's.
    """
    parts = entity.split(",")
    if '"' in entity:
        parts = [text_of((part,)) for part in Entity.parse(entity).parts]
    found = {one.partition("=")[0]: one for one in parts}
    if not found.keys() <= _DEFAULTS.keys():
        return None
    return {kind: None if one == _DEFAULTS[kind] else one for kind, one in found.items()}


def _limit(value: float | None, entity: str, types: tuple[str, ...]) -> Limit | None:
    return None if value is None else Limit(value, entity, types)


def _summarize(sides: _Sides, entity: str | None = None) -> tuple[object, ...]:
    """Return what classes must have in common to be one: values, sharing, and whose limits."""
    return tuple([one and (one.value, one.types, one.entity == entity) for one in sides])
