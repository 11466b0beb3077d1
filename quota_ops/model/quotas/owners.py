"""The mapping in cluster.yaml from users, client ids and addresses to owners."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import ip_address, ip_network
from typing import Any, NamedTuple

from msgspec import Struct

from quota_ops.model.quotas.entity import CLIENT_ID, IP, USER, Entity
from quota_ops.model.text import name_first, plural

ALL_DEFAULTS = "defaults"


class Owner(Struct, frozen=True):
    """The entities and files of an owner; a file that ends with `/` is a folder of the cluster."""

    name: str
    users: tuple[str, ...] = ()
    user_prefixes: tuple[str, ...] = ()
    client_ids: tuple[str, ...] = ()
    client_id_prefixes: tuple[str, ...] = ()
    ips: tuple[str, ...] = ()
    """Addresses and networks in canonical form: `10.20.0.7`, `10.20.0.0/16`."""
    defaults: bool = False
    files: tuple[str, ...] = ()
    code_owners: tuple[str, ...] = ()
    """Who has to approve changes of the files, as CODEOWNERS names them."""

    def claims(self) -> "Iterator[Claim]":
        """Yield everything that belongs to the owner."""
        for field_name in ("users", "user_prefixes", "client_ids", "client_id_prefixes", "files"):
            for text in getattr(self, field_name):
                yield Claim(field_name, text)
        for address in self.ips:
            yield Claim("ips", str(ip_network(address)))
        if self.defaults:
            yield Claim(ALL_DEFAULTS, "")

    def has_file(self, path: str) -> bool:
        """Return whether a path below the cluster's folder is among the files."""
        return any(
            path == file or (file.endswith("/") and path.startswith(file)) for file in self.files
        )


class Claim(NamedTuple):
    """What belongs to an owner: a field of `owners`, and one of its values."""

    field: str
    text: str

    def __str__(self) -> str:
        return f"{self.field}: {self.text}" if self.text else f"{self.field}: true"


@dataclass(frozen=True)
class OwnerIndex:
    """Finds the owner of an entity."""

    owners: tuple[Owner, ...]
    _claims: Mapping[Claim, str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        claims = {claim: owner.name for owner in self.owners for claim in owner.claims()}
        object.__setattr__(self, "_claims", claims)

    def find_owner(self, entity: Entity) -> str | None:
        """Return the owner of an entity by the mapping; None if it belongs to nobody.

        Clients choose their client id, and brokers authenticate the user: so a pair belongs to the
        owner of its user, and to that of its client id only if nobody owns the user.
        """
        found = self.find_claim(entity)
        return None if found is None else self._claims[found]

    def find_claim(self, entity: Entity) -> Claim | None:
        """Return what decides the owner of an entity; None if nothing does.

        An exact name comes before a prefix, a longer prefix before a shorter one, and a smaller
        network before a larger one.
        """
        names = entity.as_dict()
        for kind in (USER, CLIENT_ID, IP):
            name = names.get(kind)
            if name is not None:
                for claim in _list_claims(kind, name):
                    if claim in self._claims:
                        return claim
        default = Claim(ALL_DEFAULTS, "")
        is_default = all(name is None for name in names.values())
        return default if is_default and default in self._claims else None


def _list_claims(kind: str, name: str) -> Iterator[Claim]:
    """Yield the claims that would decide about a name, the first that exists decides."""
    if kind == IP:
        try:
            address = ip_address(name)
        except ValueError:  # a cluster may store a host name
            return
        for bits in range(address.max_prefixlen, -1, -1):
            yield Claim("ips", str(ip_network((address, bits), strict=False)))
        return
    names = {USER: "users", CLIENT_ID: "client_ids"}[kind]
    yield Claim(names, name)
    for end in range(len(name), 0, -1):
        yield Claim(f"{names[:-1]}_prefixes", name[:end])


class OwnerChange(NamedTuple):
    """Entities whose quotas get another owner; None is no owner."""

    before: str | None
    after: str | None
    entities: tuple[str, ...]
    source: str = ""
    """The place in Git that declares the first of them: `search.yaml:8`; empty if not known."""

    @property
    def text(self) -> str:
        """The change: `user=alice (search.yaml:8) gets another owner: payments -> search.`."""
        place = f" ({self.source})" if self.source else ""
        who = name_first((self.entities[0] + place, *self.entities[1:]), _NAMED)
        verb = plural(len(self.entities), "gets", "get")
        return f"{who} {verb} another owner: {self.before or 'none'} -> {self.after or 'none'}."

    def needs_approval(self, owners: OwnerIndex) -> bool:
        """Return whether it takes a quota from an owner, and `owners` give it to nobody new.

        Otherwise, a quota could change its owner in one commit, and its value in the next.
        """
        return self.before is not None and any(
            owners.find_owner(Entity.parse(name)) != self.after for name in self.entities
        )


_NAMED = 3
Owned = Iterable[Sequence[Any]]
"""An entity, a key, and the owner of that quota: a text or None. Then its file and line."""


def list_owner_changes(before: Owned, after: Owned) -> tuple[OwnerChange, ...]:
    """Return the changes of owner of the quotas that both sides have, by owners and entity."""
    known = {(entity, key): owner for entity, key, owner, *_ in before}
    changed: dict[tuple[str | None, str | None], dict[str, str]] = {}
    for entity, key, owner, *place in after:
        if known.get((entity, key), owner) != owner:
            places = changed.setdefault((known[entity, key], owner), {})
            places.setdefault(entity, ":".join(str(part) for part in place if part))
    found = (
        OwnerChange(*owners, tuple(sorted(places)), places[min(places)])
        for owners, places in changed.items()
    )
    return tuple(sorted(found, key=lambda change: change.entities))
