"""The limit that applies to a client: the broker's own lookup, on the stored quotas.

Source: DefaultQuotaCallback in org.apache.kafka.server.quota.ClientQuotaManager (quotaMetricTags,
quotaLimit) and ConnectionQuotas for addresses; the order of the levels is KIP-248's QuotaSource.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from ipaddress import IPv6Address, ip_address
from typing import NamedTuple

from msgspec import Struct

from quota_ops.model.quotas.entity import CLIENT_ID, ENTITY_TYPES, IP, USER, Entity
from quota_ops.model.quotas.quota import CLIENT_KEYS, QUOTA_KEYS
from quota_ops.model.quotas.rows import StoredQuota
from quota_ops.model.quotas.tables import derive_table

_DECIMALS = re.compile(r"[0-9]{1,99}(?:\.[0-9]{1,99}){0,3}")
_BYTE = 256
_LAST = (
    "each broker applies the one that was changed last, and "
    "after only one is cleared, none until the other is cleared and set again"
)


def explain_same_address(entity: str) -> str:
    """Explain what two stored names of one address mean, of which `entity` is not the declared one.

    Source: measured on brokers.
    """
    how = "if the broker resolves the name to it"
    if find_shortest(entity) is not None:
        how = "in another spelling"
    return f"the same address {how}: {_LAST}"


def normalize_address(name: str) -> str | None:
    """Return the shortest spelling of an IP address; None for a host name or an empty name.

    `10` is 0.0.0.10, `010.0.0.1` is 10.0.0.1, `[::1]` is ::1, `::ffff:10.0.0.1` is 10.0.0.1, and a
    zone is ignored. Source: java.net.InetAddress.getByName and Inet6Address.equals.
    """
    if _DECIMALS.fullmatch(name):
        return _parse_decimals(name)
    is_bracketed = name.startswith("[") and name.endswith("]")
    try:
        read = ip_address(name[1:-1] if is_bracketed else name)
    except ValueError:
        return None
    if not isinstance(read, IPv6Address):  # an IPv4 address in brackets
        return None
    return str(read.ipv4_mapped or IPv6Address(int(read)))


def find_shortest(entity: str) -> str | None:
    """Return the entity of an address in its shortest spelling, the one that Git may have.

    None for a host name, and for an entity that is not a single address.
    """
    name = Entity.parse(entity).as_dict().get(IP)
    shortest = normalize_address(name) if name else None
    return None if shortest is None else Entity.of({IP: shortest}).text


def read_address(typed: str) -> str | None:
    """Return the shortest spelling of an IP address that a person typed; None for other text.

    As in YAML, and unlike a broker, it reads neither `010.0.0.1`, which is 8.0.0.1 in some
    programs, nor `10`, nor brackets, nor a zone.
    """
    try:
        ip_address(typed)
    except ValueError:
        return None
    return None if "%" in typed else normalize_address(typed)


def _parse_decimals(name: str) -> str | None:
    """Parse numbers as bytes; the last number fills the rest of the address."""
    *first, last = map(int, name.split("."))
    room = 4 - len(first)
    if any(byte >= _BYTE for byte in first) or last >= _BYTE**room:
        return None
    return ".".join(map(str, (*first, *last.to_bytes(room, "big"))))


ANONYMOUS = "ANONYMOUS"
"""The user name of a client without authentication."""


class Level(Struct, frozen=True):
    """One level of the lookup; `own` has each entity type, and whether it has a name there.

    A type without a name is the default of that type. `rank` is 1 (first) to 8; levels of IP
    addresses have none.
    """

    name: str
    rank: int | None
    words: str
    own: tuple[tuple[str, bool], ...]

    @property
    def types(self) -> tuple[str, ...]:
        """The types of the level's entities, sorted."""
        return tuple(sorted(kind for kind, _ in self.own))

    def entity(self, names: Mapping[str, str]) -> Entity:
        """Return the entity of this level for a client with these names."""
        return Entity.of({kind: names[kind] if own else None for kind, own in self.own})


LEVELS = (
    Level("user+client-id", 1, "user and client", ((USER, True), (CLIENT_ID, True))),
    Level("user+client-id-default", 2, "user, any client", ((USER, True), (CLIENT_ID, False))),
    Level("user", 3, "user", ((USER, True),)),
    Level("user-default+client-id", 4, "any user, client", ((USER, False), (CLIENT_ID, True))),
    Level(
        "user-default+client-id-default",
        5,
        "any user, any client",
        ((USER, False), (CLIENT_ID, False)),
    ),
    Level("user-default", 6, "any user", ((USER, False),)),
    Level("client-id", 7, "client", ((CLIENT_ID, True),)),
    Level("client-id-default", 8, "any client", ((CLIENT_ID, False),)),
)
"""The levels of a user with a client id, in order: the first level with a limit applies."""
IP_LEVEL = Level("ip", None, "address", ((IP, True),))
IP_DEFAULT_LEVEL = Level("ip-default", None, "any address", ((IP, False),))

_KNOWN_TYPES = frozenset(ENTITY_TYPES)
_PREFIX = "-prefix"
"""The suffix of Redpanda's entity types that match the beginning of a name."""
_PAIR, _USER, _CLIENT = LEVELS[0].types, LEVELS[2].types, LEVELS[6].types
_OF_OWN = {tuple(sorted(level.own)): level for level in LEVELS}


def find_level(entity: Entity) -> Level | None:
    """Return the level of an entity; None for an entity that is not of users or client ids."""
    return _OF_OWN.get(tuple((kind, name is not None) for kind, name in entity.parts))


class Rung(Struct, frozen=True):
    """A level for one client: the entity of the client there, and its limit or None.

    `escaped` is set when the level is for client ids and the client has none: the limit never
    applies to it.
    """

    level: Level
    entity: Entity
    value: float | None
    escaped: bool = False


class Resolution(Struct, frozen=True):
    """The limit that applies to one client and one key, and all levels of the lookup.

    `shared_by` are the tags by which brokers count (KIP-257): clients with the same tags share the
    limit, and an empty tag means any name. Brokers write a user's tag percent-encoded.
    `by_name` are limits of host names: one applies if a broker resolved that name to the address.
    `foreign` are limits of entity types that Apache Kafka does not have; they may apply on brokers
    that have these types.
    """

    key: str
    names: Mapping[str, str]
    rungs: tuple[Rung, ...]
    shared_by: Mapping[str, str]
    by_name: tuple[Rung, ...] = ()
    foreign: tuple[StoredQuota, ...] = ()

    @property
    def _limits(self) -> tuple[Rung, ...]:
        return tuple(rung for rung in self.rungs if rung.value is not None and not rung.escaped)

    @property
    def applied(self) -> Rung | None:
        """The rung whose limit applies; None when the client is unlimited."""
        return self._limits[0] if self._limits else None

    @property
    def spellings(self) -> tuple[Rung, ...]:
        """The limits of an address under several spellings; no describe shows which applies."""
        own = tuple(limit for limit in self._limits if limit.level is IP_LEVEL)
        return own if len(own) > 1 else ()

    @property
    def overridden(self) -> tuple[Rung, ...]:
        """The limits that a limit at an earlier level overrides, in order."""
        return self._limits[1:]

    @property
    def escaped(self) -> tuple[Rung, ...]:
        """The limits that do not apply because the client has no client id."""
        return tuple(rung for rung in self.rungs if rung.value is not None and rung.escaped)


class Limits:
    """The stored quotas, arranged for lookup by key, as in a broker."""

    def __init__(self, stored: Iterable[StoredQuota]) -> None:
        self._values: dict[str, dict[Entity, float]] = {key: {} for key in QUOTA_KEYS}
        for entity, key, value in stored:
            if key in self._values:
                self._values[key][entity] = value
        self._types = {
            key: frozenset(entity.types for entity in values) & {_PAIR, _USER, _CLIENT}
            for key, values in self._values.items()
        }

    def resolve(self, key: str, *, user: str | None, client_id: str | None) -> Resolution:
        """Resolve the limit of a user's client for one of CLIENT_KEYS.

        As on a broker, no user means ANONYMOUS, and no client id means the empty one.
        """
        names = {USER: user or ANONYMOUS, CLIENT_ID: client_id or ""}
        values = self._values[key]
        rungs = tuple(
            Rung(
                level,
                entity := level.entity(names),
                values.get(entity),
                escaped=CLIENT_ID in level.types and not names[CLIENT_ID],
            )
            for level in LEVELS
        )
        counted = self._find_counted_types(key, rungs)
        tags = {kind: name if kind in counted else "" for kind, name in names.items()}
        return Resolution(key, names, rungs, tags, foreign=self._find_foreign(key, names))

    def resolve_address(self, key: str, *, ip: str) -> Resolution:
        """Resolve the limit of an IP address for one of IP_KEYS.

        Two stored spellings of the address are two rungs: the one that was changed last applies,
        and a describe does not show which one that is.
        """
        names, values = {IP: ip}, self._values[key]
        stored = [
            (normalize_address(name), Rung(IP_LEVEL, address, values[address]))
            for address in sorted(values, key=str)
            if address.types == (IP,) and (name := address.as_dict()[IP]) is not None
        ]
        wanted = normalize_address(ip)
        rungs = [rung for spelled, rung in stored if spelled == wanted]
        rungs = rungs or [Rung(IP_LEVEL, IP_LEVEL.entity(names), None)]
        anyone = IP_DEFAULT_LEVEL.entity(names)
        rungs.append(Rung(IP_DEFAULT_LEVEL, anyone, values.get(anyone)))
        by_name = tuple(rung for spelled, rung in stored if spelled is None)
        foreign = self._find_foreign(key, names)
        return Resolution(key, names, tuple(rungs), names, by_name, foreign)

    def _find_foreign(self, key: str, names: Mapping[str, str]) -> tuple[StoredQuota, ...]:
        """Return the limits of types unknown to Apache Kafka that may match the client."""
        return tuple(
            StoredQuota(entity, key, value)
            for entity, value in sorted(self._values[key].items(), key=lambda item: item[0].text)
            if not set(entity.types) <= _KNOWN_TYPES
            and all(_may_match(kind, name, names) for kind, name in entity.parts)
        )

    def _find_counted_types(self, key: str, rungs: Iterable[Rung]) -> tuple[str, ...]:
        """Return the types that a broker counts by, which depend on the stored entities.

        When all entities have the same types, the broker uses those without looking up the client.
        """
        types = self._types[key]
        if len(types) == 1:
            return next(iter(types))
        return next((rung.level.types for rung in rungs if rung.value is not None), _CLIENT)


def _may_match(kind: str, name: str | None, names: Mapping[str, str]) -> bool:
    """Return whether one part of a foreign entity may match the client."""
    own = names.get(kind.removesuffix(_PREFIX))
    if own is None:
        return kind not in _KNOWN_TYPES
    return name is None or (own.startswith(name) if kind.endswith(_PREFIX) else own == name)


_FORMS = ((True, True), (True, False), (False, True), (False, False))
"""Whether user and client id have a name, in the order of the levels."""


def find_quota(
    stored: Collection[Entity], user: str | None, client_id: str | None
) -> Entity | None:
    """Return the quota of a series among the quotas of its key then; None if it had no limit.

    A name that is None is no label of the series. A series of a client id alone may also have no
    limit: brokers count so if no quota matches and quotas of several levels exist.
    """
    names = {kind: name for kind, name in ((USER, user), (CLIENT_ID, client_id)) if name}
    for with_user, with_client_id in _FORMS:
        keeps = {USER: with_user, CLIENT_ID: with_client_id}
        entity = Entity.of({kind: name if keeps[kind] else None for kind, name in names.items()})
        if entity in stored:
            return entity
    return None


class LimitRow(NamedTuple):
    """A row of LIMITS."""

    key: str
    rank: int
    user_name: str | None
    client_id: str | None
    entity: str
    value: float


LIMITS = derive_table("limits", LimitRow)
"""Every stored limit of users and client ids with the rank of its level; null is a default."""


def list_limits(stored: Iterable[StoredQuota]) -> list[LimitRow]:
    """List the stored quotas that a broker looks up by user or client id."""
    rows = []
    for entity, key, value in stored:
        level = find_level(entity)
        if level is not None and level.rank is not None and key in CLIENT_KEYS:
            names = entity.as_dict()
            user, client_id = names.get(USER), names.get(CLIENT_ID)
            rows.append(LimitRow(key, level.rank, user, client_id, entity.text, value))
    return rows
