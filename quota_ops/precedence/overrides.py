"""The quotas that take clients from declared ones, because a broker finds them first.

The levels of a broker's lookup divide all clients into classes, as in `effects`. A quota that Git
does not declare takes a class if it decides it among all quotas that stay, and a declared one would
among the declared and the protected ones without it, with another value or shared by fewer clients.
A quota that a plan clears is judged among all quotas: it takes clients until it is cleared.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain, islice
from typing import NamedTuple

from msgspec import Struct

from quota_ops.model.quotas.entity import IP
from quota_ops.model.quotas.rows import OverrideRow, Side
from quota_ops.precedence.changed_limits import (
    ANY_CLIENT_ID,
    ANY_IP,
    ANY_USER,
    LEVELS_BY_FORM,
    NO_CLIENT_ID,
    split_entity,
)
from quota_ops.precedence.resolution import find_shortest

_ENOUGH = 2
"""How many pairs show a quota that is in many: see OVERRIDES."""
_ALL_CLIENT_IDS = {None, ANY_CLIENT_ID}


class DeclaredQuota(NamedTuple):
    """A row of DECLARED_QUOTAS in quota_ops/sql/text.py."""

    cluster: str
    key: str
    entity: str
    value: float
    owner: str | None
    file: str
    line: int


class OtherQuota(NamedTuple):
    """A row of OTHER_QUOTAS; it has no side if it is held, or only reported."""

    cluster: str
    key: str
    entity: str
    value: float
    held: str | None
    side: str | None


def find_overrides(
    others: Iterable[OtherQuota], declared: Iterable[DeclaredQuota]
) -> list[OverrideRow]:
    """Return the rows of OVERRIDES in order.

    `declared` may leave out quotas of single users whom none of the others names.
    """
    keys: dict[tuple[str, str], tuple[list[DeclaredQuota], list[OtherQuota]]]
    keys = defaultdict(lambda: ([], []))
    for quota in declared:
        keys[quota[:2]][0].append(quota)
    for other in others:
        keys[other[:2]][1].append(other)
    rows = [
        OverrideRow(cluster, other.entity, key, other.value, other.held, *taken[2:], other.side)
        for (cluster, key), sides in keys.items()
        for other, quota in {*_Overrides(*sides).find()}
        if (taken := quota.declared) and other.side
    ]
    return sorted(rows)  # a quota has one value, so the declared entity decides


class _Quota(Struct, frozen=True, eq=False, gc=False):
    """A quota and the parts of its entity; one without a side is declared, held or reported."""

    entity: str
    value: float
    user: str | None
    client_id: str | None
    side: str | None
    held: str | None
    declared: DeclaredQuota | None

    @property
    def is_agreed(self) -> bool:
        """Return whether the quota is one of those without which no other is judged."""
        return self.side is None or self.side == Side.PROTECTED

    @property
    def limit(self) -> tuple[float, bool, bool]:
        """Return the value, and whether clients of one user, client id or both share it."""
        return self.value, self.user is not None, self.client_id is not None

    def counts_for(self, other: "_Quota") -> bool:
        """Return whether the quota is there when `other` is judged."""
        return self.side != Side.LEAVING or other.side == Side.LEAVING


_Pair = tuple[_Quota, _Quota]
_Groups = Mapping[tuple[float, bool, bool], Sequence[_Quota]]


class _Overrides:
    """The quotas of one key of a cluster."""

    def __init__(self, declared: Sequence[DeclaredQuota], others: Sequence[OtherQuota]) -> None:
        self._quotas: dict[tuple[str | None, str | None], _Quota] = {}
        self._addresses: dict[str, _Quota] = {}
        self._others: list[_Quota] = []
        for quota in declared:
            self._add(quota.entity, quota.value, declared=quota)
        self._spellings = {other.entity: self._find_spellings(other.entity) for other in others}
        for other in others:
            # No plan clears another spelling of a declared address: see batches.sql.
            is_kept = other.side == Side.LEAVING and self._spellings[other.entity]
            side = Side.UNMANAGED if is_kept else other.side
            self._add(other.entity, other.value, side, other.held)
        forms = {(_find_form(user), _find_form(client_id)) for user, client_id in self._quotas}
        self._levels = [level[1:] for level in LEVELS_BY_FORM if level[1:] in forms]
        self._client_ids = dict.fromkeys(
            client_id
            for (user, client_id), quota in self._quotas.items()
            if quota.declared and user in {None, ANY_USER} and client_id not in _ALL_CLIENT_IDS
        )
        """The client ids with a declared quota of their own for any user."""

    def _add(
        self,
        entity: str,
        value: float,
        side: str | None = None,
        held: str | None = None,
        declared: DeclaredQuota | None = None,
    ) -> None:
        parts = split_entity(entity)
        if parts is None or parts.client_id == NO_CLIENT_ID:
            return
        quota = _Quota(entity, value, parts.user, parts.client_id, side, held, declared)
        if parts.address is not None:
            self._addresses[entity] = quota
        else:
            self._quotas[parts.user, parts.client_id] = quota
        if side:
            self._others.append(quota)

    def _find_spellings(self, entity: str) -> Sequence[_Quota]:
        """Return the declared quotas of an address; all of them for a host name."""
        if not entity.startswith(f"{IP}=") or entity == ANY_IP:
            return ()
        if (shortest := find_shortest(entity)) is None:
            return [quota for address, quota in self._addresses.items() if address != ANY_IP]
        return [self._addresses[shortest]] if shortest in self._addresses else ()

    def find(self) -> Iterator[_Pair]:
        """Yield each quota that is not declared with one that decides without it, some twice."""
        for other in self._others:
            if other.entity in self._addresses:
                anyone, same = self._addresses.get(ANY_IP), self._spellings[other.entity]
                # Whatever the value: clearing one spelling leaves the address without a limit.
                yield from ((other, quota) for quota in same)
                if anyone and not same and anyone.value != other.value:
                    yield other, anyone
                continue
            for user, client_id in self._list_classes(other):
                quota = self._find_next(other, user, client_id)
                if quota and (quota.limit != other.limit or self._gathers(other)):
                    yield other, quota
        yield from self._find_client_ids()

    def _list_classes(self, other: _Quota) -> Iterator[tuple[str | None, str | None]]:
        """Yield the users and client ids for which a quota may decide; None for any other.

        Client ids with a quota of their own are left out for a quota of one user.
        """
        user = None if other.user == ANY_USER else other.user
        if other.client_id not in _ALL_CLIENT_IDS:
            yield user, other.client_id
            return
        yield user, None
        if other.client_id is None and any(of_client_id for _, of_client_id in self._levels):
            yield user, NO_CLIENT_ID
        if user is None:
            yield from ((None, client_id) for client_id in self._client_ids)

    def _find_next(
        self, other: _Quota | None, user: str | None, client_id: str | None
    ) -> _Quota | None:
        """Return the agreed quota that decides a class without `other`; None if that does not."""
        is_met = other is None
        users, client_ids = (None, ANY_USER, user or ""), (None, ANY_CLIENT_ID, client_id or "")
        for of_user, of_client_id in self._levels:
            if of_client_id and client_id == NO_CLIENT_ID:
                continue
            quota = self._quotas.get((users[of_user], client_ids[of_client_id]))
            if quota is None:
                continue
            if quota is other:
                is_met = True
            elif is_met and quota.is_agreed:
                return quota
            elif not is_met and other and quota.counts_for(other):
                return None
        return None

    def _is_free(self, other: _Quota, client_id: str | None) -> bool:
        """Return whether the user of `other` has no quota for the pair with a client id."""
        quota = self._quotas.get((other.user, client_id))
        return quota is None or not quota.counts_for(other)

    def _gathers(self, other: _Quota) -> bool:
        """Return whether client ids of a user share an equal limit that had one of their own."""
        return (
            other.client_id is None
            and self._is_free(other, ANY_CLIENT_ID)
            and any(self._is_free(other, client_id) for client_id in self._own_client_ids)
        )

    @cached_property
    def _own_client_ids(self) -> list[str]:
        """The client ids that each have an agreed limit of their own for any user."""
        every = self._quotas.items()
        return [of for (user, of), quota in every if user == ANY_USER and of and quota.is_agreed]

    def _falls(self, other: _Quota) -> bool:
        """Return whether client ids of one user get the limits of any user without this quota."""
        if other.user in {None, ANY_USER} or other.client_id not in _ALL_CLIENT_IDS:
            return False
        if other.client_id is None:
            return self._is_free(other, ANY_CLIENT_ID)
        quota = self._quotas.get((other.user, None))
        return quota is None or not quota.is_agreed

    def _find_client_ids(self) -> Iterator[_Pair]:
        """Yield enough pairs of a quota of one user and one of a client id.

        All such quotas meet, unless their limits are equal or the user has a quota for the pair.
        """
        deciding = [self._find_next(None, None, client_id) for client_id in self._client_ids]
        declared = [
            quota
            for quota in deciding
            if quota and quota.declared and quota.client_id in self._client_ids
        ]
        for side in Side if declared else ():
            users = [quota for quota in self._others if quota.side == side and self._falls(quota)]
            of_users, of_client_ids = _group(users), _group(declared)
            for user in users:
                pairs = ((user, quota) for quota in _list_unlike(user, of_client_ids))
                yield from islice(filter(self._meet, pairs), _ENOUGH)
            for quota in declared:
                pairs = ((user, quota) for user in _list_unlike(quota, of_users))
                yield from islice(filter(self._meet, pairs), _ENOUGH)

    def _meet(self, pair: _Pair) -> bool:
        return self._is_free(pair[0], pair[1].client_id)


def _find_form(part: str | None) -> int:
    """Return how LEVELS_BY_FORM has a part of an entity."""
    return 0 if part is None else 1 if part in {ANY_USER, ANY_CLIENT_ID} else 2


def _group(quotas: Iterable[_Quota]) -> _Groups:
    groups = defaultdict(list)
    for quota in quotas:
        groups[quota.limit].append(quota)
    return groups


def _list_unlike(quota: _Quota, groups: _Groups) -> Iterator[_Quota]:
    """Yield the quotas with other limits."""
    return chain.from_iterable(group for limit, group in groups.items() if limit != quota.limit)
