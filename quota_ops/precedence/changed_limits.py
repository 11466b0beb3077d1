"""The quotas of one key before and after some changes, arranged to look up classes of clients."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import NamedTuple, Self

from msgspec import Struct

from quota_ops.model.plans.effect import Limit
from quota_ops.model.quotas.entity import CLIENT_ID, DEFAULT_TEXT, IP, USER, Entity, text_of
from quota_ops.model.quotas.quota import QUOTA_KEYS
from quota_ops.model.quotas.rows import Key
from quota_ops.precedence.resolution import LEVELS

ANY_USER, ANY_CLIENT_ID, ANY_IP = (f"{kind}={DEFAULT_TEXT}" for kind in (USER, CLIENT_ID, IP))
NO_CLIENT_ID = f'{CLIENT_ID}=""'
"""A client id that counts as none, so that no limit for it ever applies."""
_USER_PART = f"{USER}="
"""How a user begins in an entity's text; without quotes in it, the user is the last part."""
_OTHER = ""
"""Any name without a limit of its own: no entity has it."""
_NAMED = 2
_FORMS = {None: 0, False: 1, True: _NAMED}
_Level = tuple[tuple[str, ...], int, int]
LEVELS_BY_FORM: list[_Level] = [
    (level.types, _FORMS[own.get(USER)], _FORMS[own.get(CLIENT_ID)])
    for level in LEVELS
    for own in (dict(level.own),)
]
"""Of each level: its types, and what it has of users and of client ids: 0 for nothing, 1 for the
default, 2 for a name."""
_LEVELS_OF_USER = [level for level in LEVELS_BY_FORM if level[1] == _NAMED]
_LEVELS_OF_ANYONE = [level for level in LEVELS_BY_FORM if level[1] != _NAMED]


class Change(Struct, frozen=True):
    """The stored value of a quota before and after; None where it is not stored."""

    before: float | None = None
    after: float | None = None

    @property
    def is_kept(self) -> bool:
        """Return whether the quota is stored before and after."""
        return self.before is not None and self.after is not None


NOT_STORED = Change()


class Users(NamedTuple):
    """The users whose own limit stays, and by client id those who have a limit for it.

    `of_any_client_id` are those with a limit for any other client id, which clients without a
    client id do not get.
    """

    own: set[str]
    of_any_client_id: set[str]
    of_client_id: dict[str, set[str]]


class Neighbors(NamedTuple):
    """The stored quotas that matter to some changes, by key and entity.

    The other quotas of users whom no change names are only in `users`, by key.
    """

    quotas: Mapping[str, Mapping[str, Change]]
    users: Mapping[str, Users]


def list_neighbors(stored: Iterable[tuple[str, str, float]], changes: Iterable[Key]) -> Neighbors:
    """Return the stored quotas, as (entity, key, value), that matter to these changes."""
    changed: dict[str, set[str]] = {key: set() for _, key in changes if key in QUOTA_KEYS}
    for entity, key in changes:
        if key in changed and (at := entity.find(_USER_PART)) >= 0:
            changed[key].add(entity[at:])
    quotas: dict[str, dict[str, Change]] = {key: {} for key in changed}
    users = {key: Users(set(), set(), defaultdict(set)) for key in changed}
    for entity, key, value in stored:
        if key not in changed:
            continue
        at = entity.find(_USER_PART)
        user = entity[at:]
        if at < 0 or user == ANY_USER or user in changed[key] or '"' in entity:
            quotas[key][entity] = Change(value, value)
        elif at == 0:
            users[key].own.add(user)
        elif entity.startswith(ANY_CLIENT_ID):
            users[key].of_any_client_id.add(user)
        else:
            users[key].of_client_id[entity[: at - 1]].add(user)
    return Neighbors(quotas, users)


class Sides(Struct, frozen=True):
    """The limit of a class before and after the changes.

    `if_kept` is the limit after them if the examined quota were not removed.
    """

    before: Limit | None
    after: Limit | None
    if_kept: Limit | None

    def come_from(self, entity: str) -> bool:
        """Return whether the quota of an entity decides, or would if it were not removed."""
        sides = self.before, self.after, self.if_kept
        return any(limit is not None and limit.entity == entity for limit in sides)

    def summarize(self, entity: str) -> tuple[object, ...]:
        """Return the key by which classes are merged: limits, and whether the entity has them."""
        return tuple(
            [
                limit and (limit.value, limit.types, limit.entity == entity)
                for limit in (self.before, self.after, self.if_kept)
            ]
        )

    def fall_back(self, others: Self) -> Self:
        """Return these limits, and those of `others` on a side without one."""
        after = self.after or others.after
        return type(self)(self.before or others.before, after, self.if_kept or after)


class Parts(Struct, frozen=True):
    """The parts of an entity's text, such as `user=alice`; None for types that it does not have."""

    user: str | None
    client_id: str | None
    address: str | None


class ChangedLimits:
    """The quotas of one key, by the text of their entity; those of unknown types are left out.

    `parts` has the parts of each entity. `own_users` are users with a limit of their own that
    stays, and `own_addresses` such addresses. `partly_own` are users with a limit for any
    client id, before or after the changes, and no limit that stays for clients without one.
    `own_ids` has the client ids of each user's pairs and, at None, those that have a default.
    """

    def __init__(self, quotas: Mapping[str, Change], users: Users) -> None:
        self.parts: dict[str, Parts] = {}
        self.addresses: dict[str, Change] = {}
        self.own_addresses: set[str] = set()
        self.own_users = users.own | users.of_any_client_id
        self.partly_own = users.of_any_client_id - users.own
        self._users_of = users.of_client_id
        self._pair_users: dict[str, set[str]] = defaultdict(set)
        self.own_ids: dict[str | None, dict[str, None]] = defaultdict(dict)
        self._stored: dict[tuple[str | None, str | None], tuple[str, Change]] = {}
        """The text and the values of each entity with a user or a client id, by these parts."""
        self.has_client_id_defaults = False
        for entity, change in quotas.items():
            if change != NOT_STORED and (parts := split_entity(entity)):
                self.parts[entity] = parts
                self._add(entity, parts, change)
        own = {user for user in self.partly_own if quotas.get(user, NOT_STORED).is_kept}
        self.partly_own -= own
        self._of_anyone: dict[tuple[str | None, bool], Sides] = {}

    def _add(self, entity: str, parts: Parts, change: Change) -> None:
        is_kept = change.is_kept
        if parts.address is not None:
            self.addresses[entity] = change
            if is_kept and parts.address != ANY_IP:
                self.own_addresses.add(entity)
            return
        if parts.client_id == NO_CLIENT_ID:
            return
        self._stored[parts.user, parts.client_id] = entity, change
        user = None if parts.user == ANY_USER else parts.user
        self.has_client_id_defaults |= parts.client_id == ANY_CLIENT_ID
        if parts.client_id in {None, ANY_CLIENT_ID}:
            if user and is_kept:
                self.own_users.add(user)
            if user and parts.client_id:
                self.partly_own.add(user)
            return
        self.own_ids[user][parts.client_id] = None
        if user and is_kept:
            self._pair_users[parts.client_id].add(user)

    def find_pair_users(self, client_id: str) -> set[str]:
        """Return the users with a limit of their own for a client id that stays."""
        return self._pair_users[client_id] | self._users_of.get(client_id, set())

    def decide(
        self,
        user: str | None,
        client_id: str | None,
        examined: str | None = None,
        *,
        sends_client_id: bool = True,
    ) -> Sides:
        """Return the limit of a class on each side: that of the first level with one.

        None is any name without a limit of its own. `examined` is the entity whose quota decides
        `if_kept`. `Limits.resolve` lists all levels of one client; a plan needs thousands of
        answers. A property test compares the two.
        """
        if user is None:
            levels, sends = _LEVELS_OF_ANYONE, sends_client_id
            return self._look_up(levels, _OTHER, client_id, examined, sends_client_id=sends)
        own = self.decide_own(user, client_id, examined, sends_client_id=sends_client_id)
        if own.before and own.after:
            return own
        client = client_id, sends_client_id
        if client not in self._of_anyone:
            self._of_anyone[client] = self.decide(None, client_id, sends_client_id=sends_client_id)
        return own.fall_back(self._of_anyone[client])

    def decide_own(
        self,
        user: str,
        client_id: str | None,
        examined: str | None,
        *,
        sends_client_id: bool = True,
    ) -> Sides:
        """Return what `decide` does, from quotas that name the user."""
        levels, sends = _LEVELS_OF_USER, sends_client_id
        return self._look_up(levels, user, client_id, examined, sends_client_id=sends)

    def _look_up(
        self,
        levels: Iterable[_Level],
        user: str,
        client_id: str | None,
        examined: str | None,
        *,
        sends_client_id: bool,
    ) -> Sides:
        users = None, ANY_USER, user
        client_ids = None, ANY_CLIENT_ID, client_id or _OTHER
        before = after = if_kept = None
        for types, of_user, of_client_id in levels:
            if of_client_id and not sends_client_id:
                continue
            found = self._stored.get((users[of_user], client_ids[of_client_id]))
            if found is None:
                continue
            entity, change = found
            if before is None and change.before is not None:
                before = Limit(change.before, entity, types)
            if after is None:
                if change.after is not None:
                    after = Limit(change.after, entity, types)
                elif entity == examined and change.before is not None:
                    if_kept = Limit(change.before, entity, types)
            if before and after:
                break
        return Sides(before, after, if_kept or after)


def split_entity(entity: str) -> Parts | None:
    """Return the parts of an entity's text; None if a type is not Apache Kafka's."""
    texts = entity.split(",")
    if '"' in entity:
        texts = [text_of((part,)) for part in Entity.parse(entity).parts]
    user = client_id = address = None
    for text in texts:
        kind = text.partition("=")[0]
        if kind == USER:
            user = text
        elif kind == CLIENT_ID:
            client_id = text
        elif kind == IP:
            address = text
        else:
            return None
    return Parts(user, client_id, address)
