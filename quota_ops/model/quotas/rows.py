"""Rows of the tables that stages fill themselves; `model.tables` derives their columns."""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from enum import StrEnum
from typing import NamedTuple

from quota_ops.model.quotas.entity import Entity
from quota_ops.model.quotas.quota import same


class Key(NamedTuple):
    """The identity of a row on a cluster: the text of its entity, and the quota key."""

    entity: str
    key: str


Keys = AbstractSet[Key]
"""Rows by entity and key."""

Stored = Mapping[Key, float]
"""The values that a cluster stores, by entity and key."""

Targets = Mapping[Key, float | None]
"""The values that a cluster should store, by entity and key; None if it should store none.

A target has other names elsewhere: `target` in a difference, which may also write nothing,
`expected` in a verdict.
"""


def find_unequal(targets: Targets, stored: Stored) -> tuple[Key, ...]:
    """Return the keys whose stored value is not the target: the rule of apply and of verify."""
    if targets.items() <= stored.items():
        return ()  # the usual case, and a fast check
    return tuple(row for row, value in targets.items() if not same(stored.get(row), value))


class DesiredRow(NamedTuple):
    """A row of DESIRED: a limit that a file declares.

    `derivation` explains how the value follows from that line; None if the line declares it.
    `until` (ISO 8601, UTC) is when the declared value changes, `returns_to` its value from then on
    if it is temporary: 0 if it then has none, because Kafka has no quota of 0.

    `whole` is the limit of the whole cluster, and `value` the share of each of `brokers`, those
    that lead partitions of `topics` (separated by commas; None for any). While it is not divided,
    `brokers` is None and `value` the whole. `whole_after` is the whole that `returns_to` is of.
    """

    cluster: str
    entity: str
    key: str
    value: float
    owner: str | None
    reason: str | None
    file: str
    line: int
    derivation: str | None = None
    until: str | None = None
    returns_to: float | None = None
    whole: float | None = None
    whole_after: float | None = None
    topics: str | None = None
    brokers: int | None = None

    @property
    def id(self) -> Key:
        """Return entity and key."""
        return Key(self.entity, self.key)

    @property
    def declared(self) -> tuple[float, float | None, str | None]:
        """What Git declares, to compare files without a cluster: value, whole and topics."""
        return self.value, self.whole, self.topics

    @property
    def needs_brokers(self) -> bool:
        """Whether its value, or the one after it, is not divided by brokers yet."""
        return self.brokers is None and (self.whole, self.whole_after) != (None, None)


class StoredQuota(NamedTuple):
    """One key of one entity as a broker describes it; `value` in the key's own unit."""

    entity: Entity
    key: str
    value: float


class ActualRow(NamedTuple):
    """A row of ACTUAL: a stored quota, and whether runs may write it."""

    cluster: str
    entity: str
    key: str
    value: float
    in_scope: bool
    hands_off: str | None

    @property
    def id(self) -> Key:
        """Return entity and key."""
        return Key(self.entity, self.key)


class LedgerRow(NamedTuple):
    """A row of LEDGER: a value that a run wrote, or was about to write, to the cluster.

    `sequence` is the number of that run: of two runs, the one with the larger number began later.
    `returns_to` is what Git declared as the value after this one, if this one is temporary,
    `brokers` by how many a limit of the whole cluster was divided to get it.
    """

    cluster: str
    entity: str
    key: str
    value: float | None
    state: str
    owner: str | None
    file: str | None
    commit: str | None
    run: str
    at: str
    sequence: int | None = None
    returns_to: float | None = None
    brokers: int | None = None

    @property
    def id(self) -> Key:
        """Return entity and key."""
        return Key(self.entity, self.key)


class ClusterRow(NamedTuple):
    """A row of CLUSTERS: the settings of the diff for one cluster."""

    cluster: str
    drift: str
    clear_unmanaged: bool
    invalid_files: str | None = None


class HoldRow(NamedTuple):
    """A row of HOLDS: an entity on hold."""

    cluster: str
    entity: str
    held: str


class Side(StrEnum):
    """Why the cluster stores a row that Git does not declare."""

    UNMANAGED = "unmanaged"
    PROTECTED = "protected"
    LEAVING = "leaving"
    """A plan clears it."""


class OverrideRow(NamedTuple):
    """A row of OVERRIDES: a row of a `Side`, and a declared one that it replaces for some clients.

    A row that leaves does so until it is cleared, any other one afterwards too.
    """

    cluster: str
    entity: str
    key: str
    value: float
    held: str | None
    declared_entity: str
    declared: float
    owner: str | None
    file: str
    line: int
    side: str

    @property
    def id(self) -> Key:
        """Return entity and key of the row that comes first."""
        return Key(self.entity, self.key)

    @property
    def declared_id(self) -> Key:
        """Return entity and key of the declared row."""
        return Key(self.declared_entity, self.key)


class LostLimit(NamedTuple):
    """A limit of an address that brokers store, and do not apply since another spelling left."""

    entity: str
    key: str
    value: float
    spelling: str
    """The entity with the other spelling of the address, which was cleared."""

    @property
    def id(self) -> Key:
        """Return entity and key."""
        return Key(self.entity, self.key)

    @property
    def words(self) -> str:
        """Return why it is not in force."""
        how = "the same address in another spelling, was cleared"
        return f"stored, but not in force since {self.spelling}, {how}"
