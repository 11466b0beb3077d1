"""A difference: one row on which Git, the cluster and the ledger do not agree."""

from enum import StrEnum
from typing import NamedTuple

from quota_ops.model.entity import DEFAULT_TEXT, Entity
from quota_ops.model.rows import Key


class Kind(StrEnum):
    """Why a row differs; the words of sql/diff.sql."""

    IN_SYNC = "in_sync"
    """Git and the cluster agree, the ledger does not know it yet."""
    PENDING = "pending"
    """Git moved; the cluster still holds what we put there, or nothing."""
    DRIFTED = "drifted"
    """The cluster moved; Git still says what we put there."""
    TAKEOVER = "takeover"
    """The cluster has another value, and by the ledger no run of ours put it there."""
    CONFLICT = "conflict"
    """Git and the cluster both moved."""
    REMOVED = "removed"
    """Gone from Git, still on the cluster as we put it there."""
    CHANGED_SINCE = "changed_since"
    """Gone from Git, and changed on the cluster since we put it there."""
    LATE_WRITE = "late_write"
    """The cluster has the value of an earlier run's write that another run had replaced."""
    RETURNED = "returned"
    """Not in Git, and on the cluster with a value that a run of ours cleared, or wrote late."""
    UNMANAGED = "unmanaged"
    """On the cluster, and never ours."""
    GONE = "gone"
    """Ours by the ledger, but neither in Git nor on the cluster."""
    CLEARED = "cleared"
    """On neither side, and noted by a run of ours that never came to verify."""


class Action(StrEnum):
    """What a plan does with a row."""

    SET = "set"
    CLEAR = "clear"
    RECORD = "record"
    """Nothing on the cluster; verify writes the row to the ledger."""
    FORGET = "forget"
    """Nothing on the cluster; verify takes the row out of the ledger."""
    REPORT = "report"
    """Nothing anywhere; people are told."""
    HELD = "held"
    """Nothing anywhere while a person's hold lasts; people are told until when, by whom and why."""


DRIFT_KINDS = frozenset({Kind.DRIFTED, Kind.CONFLICT, Kind.CHANGED_SINCE, Kind.GONE})
"""The kinds that mean that somebody else moved the cluster."""

FOREIGN_KINDS = frozenset(
    {Kind.TAKEOVER, Kind.UNMANAGED, Kind.CONFLICT, Kind.CHANGED_SINCE, Kind.RETURNED}
)
"""The kinds that a write of ours ends though somebody else may have put there what it replaces."""

UNKNOWN_KINDS = frozenset({Kind.TAKEOVER, Kind.UNMANAGED})
"""The kinds that mean that the ledger does not know the value on the cluster."""

EARLIER_KINDS = frozenset({Kind.LATE_WRITE, Kind.RETURNED})
"""The kinds that mean that the cluster has an earlier value of ours again."""

WRITES = frozenset({Action.SET, Action.CLEAR})


class Difference(NamedTuple):
    """A row of the table DIFFERENCES of one cluster."""

    cluster: str
    entity: str
    key: str
    kind: Kind
    action: Action
    before: float | None
    after: float | None
    verified: float | None
    owner: str | None
    reason: str | None
    file: str | None
    line: int | None
    commit: str | None
    run: str | None
    since: str | None
    hands_off: str | None
    held: str | None
    memory: str | None = None

    @property
    def id(self) -> Key:
        """Return entity and key."""
        return Key(self.entity, self.key)

    @property
    def target(self) -> float | None:
        """The value that the cluster is to hold; None when the key is cleared."""
        return self.after if self.action is Action.SET else None

    @property
    def has_default(self) -> bool:
        """Whether its entity is a default, so that many clients share it."""
        return DEFAULT_TEXT in self.entity and Entity.parse(self.entity).has_default

    @property
    def is_drift(self) -> bool:
        """Whether somebody else moved this row on the cluster."""
        return self.kind in DRIFT_KINDS

    @property
    def source(self) -> str | None:
        """The place in Git that asks for the row, `payments.yaml:8`."""
        return None if self.file is None else f"{self.file}:{self.line}" if self.line else self.file
