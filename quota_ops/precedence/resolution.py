"""Which limit holds for a client: the broker's own lookup, done from the stored quotas.

Source: DefaultQuotaCallback in org.apache.kafka.server.quota.ClientQuotaManager (quotaMetricTags,
quotaLimit) and ConnectionQuotas for addresses; the order of the levels is KIP-248's QuotaSource.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address

from quota_ops.model.entity import CLIENT_ID, ENTITY_TYPES, IP, USER, Entity
from quota_ops.model.quota import QUOTA_KEYS
from quota_ops.model.rows import StoredQuota

ANONYMOUS = "ANONYMOUS"
"""The user that a broker sees when nobody logged in."""
CLIENT_KEYS = tuple(key.name for key in QUOTA_KEYS.values() if USER in key.types)
IP_KEYS = tuple(key.name for key in QUOTA_KEYS.values() if IP in key.types)


@dataclass(frozen=True, slots=True)
class Level:
    """One place where a limit is looked for; `own` says of each type whether it bears a name.

    A type that does not is there as its default. `rank` is 1 (first) to 8; addresses have none.
    """

    name: str
    rank: int | None
    words: str
    own: tuple[tuple[str, bool], ...]

    @property
    def types(self) -> tuple[str, ...]:
        """The types of the level's entities, in their order."""
        return tuple(sorted(kind for kind, _ in self.own))

    def entity(self, names: Mapping[str, str]) -> Entity:
        """The entity of this level that a client of these names meets."""
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
"""Where a broker looks for the limit of a user with a client id; the first that has one holds."""
IP_LEVEL = Level("ip", None, "address", ((IP, True),))
IP_DEFAULT_LEVEL = Level("ip-default", None, "any address", ((IP, False),))

_KNOWN_TYPES = frozenset(ENTITY_TYPES)
_PREFIX = "-prefix"
"""How Redpanda names a type that is matched by the beginning of a name."""
_PAIR, _USER, _CLIENT = LEVELS[0].types, LEVELS[2].types, LEVELS[6].types
_OF_OWN = {tuple(sorted(level.own)): level for level in LEVELS}


def level_of(entity: Entity) -> Level | None:
    """The level at which an entity's limits are found; None when it is for no user or client id."""
    return _OF_OWN.get(tuple((kind, name is not None) for kind, name in entity.parts))


@dataclass(frozen=True, slots=True)
class Rung:
    """A level as one client meets it: its entity there and the entity's limit, None without one.

    `escaped`: the client has no client id, which no limit for client ids can hold.
    """

    level: Level
    entity: Entity
    value: float | None
    escaped: bool = False


@dataclass(frozen=True, slots=True)
class Resolution:
    """What holds for one client and one key, and everything that was looked at on the way.

    `shared_by` are the tags by which brokers count (KIP-257): whoever has the same tags shares the
    limit, and an empty tag is everybody. Brokers write a user's tag percent-encoded. `by_name` are
    limits of host names: one holds where a broker found the address when it looked that name up.
    `foreign` are limits of entity types that Apache Kafka does not have, and that may apply where
    brokers have them.
    """

    key: str
    names: Mapping[str, str]
    rungs: tuple[Rung, ...]
    shared_by: Mapping[str, str]
    by_name: tuple[Rung, ...] = ()
    foreign: tuple[StoredQuota, ...] = ()

    @property
    def _limits(self) -> tuple[Rung, ...]:
        return tuple(one for one in self.rungs if one.value is not None and not one.escaped)

    @property
    def holds(self) -> Rung | None:
        """The rung whose limit holds; None when nothing limits the client."""
        return self._limits[0] if self._limits else None

    @property
    def spellings(self) -> tuple[Rung, ...]:
        """The limits of an address under several spellings: which holds cannot be read back."""
        own = tuple(one for one in self._limits if one.level is IP_LEVEL)
        return own if len(own) > 1 else ()

    @property
    def overridden(self) -> tuple[Rung, ...]:
        """The limits that would have held without those before them, in order."""
        return self._limits[1:]

    @property
    def escaped(self) -> tuple[Rung, ...]:
        """The limits that the client escapes because it has no client id."""
        return tuple(one for one in self.rungs if one.value is not None and one.escaped)


class Limits:
    """The stored quotas, arranged for lookup: per key, as a broker keeps them."""

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
        """What holds for a user's client by one of CLIENT_KEYS.

        No user is ANONYMOUS and no client id the empty one, as a broker takes them.
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
        counted = self._counted(key, rungs)
        tags = {kind: name if kind in counted else "" for kind, name in names.items()}
        return Resolution(key, names, rungs, tags, foreign=self._foreign(key, names))

    def resolve_address(self, key: str, *, ip: str) -> Resolution:
        """What holds for an IP address by one of IP_KEYS.

        Two stored spellings of the address are two rungs: which of them a broker obeys depends on
        which was changed last, and no describe tells that.
        """
        names, values = {IP: ip}, self._values[key]
        stored = [
            (address(name), Rung(IP_LEVEL, one, values[one]))
            for one in sorted(values, key=str)
            if one.types == (IP,) and (name := one.as_dict()[IP]) is not None
        ]
        meant = address(ip)
        rungs = [rung for spelled, rung in stored if spelled == meant]
        rungs = rungs or [Rung(IP_LEVEL, IP_LEVEL.entity(names), None)]
        anyone = IP_DEFAULT_LEVEL.entity(names)
        rungs.append(Rung(IP_DEFAULT_LEVEL, anyone, values.get(anyone)))
        by_name = tuple(rung for spelled, rung in stored if spelled is None)
        foreign = self._foreign(key, names)
        return Resolution(key, names, tuple(rungs), names, by_name, foreign)

    def _foreign(self, key: str, names: Mapping[str, str]) -> tuple[StoredQuota, ...]:
        """The limits of a type that Apache Kafka does not have, which a client may meet."""
        return tuple(
            StoredQuota(entity, key, value)
            for entity, value in sorted(self._values[key].items(), key=lambda one: one[0].text)
            if not set(entity.types) <= _KNOWN_TYPES
            and all(_may_match(kind, name, names) for kind, name in entity.parts)
        )

    def _counted(self, key: str, rungs: Iterable[Rung]) -> tuple[str, ...]:
        """The types by whose names a broker counts, which depends on the entities that there are.

        With entities of one shape only, it does not look for the client's own.
        """
        types = self._types[key]
        if len(types) == 1:
            return next(iter(types))
        return next((one.level.types for one in rungs if one.value is not None), _CLIENT)


def _may_match(kind: str, name: str | None, names: Mapping[str, str]) -> bool:
    """Whether one part of a foreign entity may be the client's."""
    own = names.get(kind.removesuffix(_PREFIX))
    if own is None:
        return kind not in _KNOWN_TYPES
    return name is None or (own.startswith(name) if kind.endswith(_PREFIX) else own == name)


_DECIMALS = re.compile(r"[0-9]{1,99}(?:\.[0-9]{1,99}){0,3}")
_BYTE = 256


def address(name: str) -> str | None:
    """The shortest spelling of the address that a name spells; None for a host name or no name.

    `10` is 0.0.0.10, `010.0.0.1` is 10.0.0.1, `[::1]` is ::1, `::ffff:10.0.0.1` is 10.0.0.1, and a
    zone makes no other address. Source: java.net.InetAddress.getByName and Inet6Address.equals.
    """
    if _DECIMALS.fullmatch(name):
        return _of_decimals(name)
    is_bracketed = name.startswith("[") and name.endswith("]")
    try:
        read = ip_address(name[1:-1] if is_bracketed else name)
    except ValueError:
        return None
    if not isinstance(read, IPv6Address):  # in brackets, as others are decimals
        return None
    return str(read.ipv4_mapped or IPv6Address(int(read)))


def _of_decimals(name: str) -> str | None:
    """Numbers are bytes, but the last fills whatever the address has left."""
    *first, last = map(int, name.split("."))
    room = 4 - len(first)
    if any(one >= _BYTE for one in first) or last >= _BYTE**room:
        return None
    return ".".join(map(str, (*first, *last.to_bytes(room, "big"))))
