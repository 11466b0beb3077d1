"""A difference: a row on which Git, the cluster and the ledger disagree."""

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

from quota_ops.model.quotas.entity import DEFAULT_TEXT, Entity
from quota_ops.model.quotas.quota import same
from quota_ops.model.quotas.rows import Key


class Kind(StrEnum):
    """Why a row differs; the values are those of sql/diff.sql."""

    IN_SYNC = "in_sync"
    """Git and the cluster agree, but the ledger does not have the row yet."""
    PENDING = "pending"
    """Git changed; the cluster still has the value of the last run, or none."""
    DRIFTED = "drifted"
    """The cluster changed; Git still declares the value of the last run."""
    TAKEOVER = "takeover"
    """The cluster has another value, which no run wrote according to the ledger."""
    CONFLICT = "conflict"
    """Git and the cluster both changed."""
    REMOVED = "removed"
    """Removed from Git; the cluster still has the value of the last run."""
    CHANGED_SINCE = "changed_since"
    """Removed from Git, and changed on the cluster since a run wrote it."""
    LATE_WRITE = "late_write"
    """The cluster has a value that an earlier run wrote and another run replaced."""
    RETURNED = "returned"
    """Not in Git, and on the cluster with a value that a run cleared or wrote late."""
    UNMANAGED = "unmanaged"
    """On the cluster, and never managed."""
    OVERRIDING = "overriding"
    """Unmanaged, and some clients get it in place of what Git declares for them."""
    GONE = "gone"
    """Managed according to the ledger, but neither in Git nor on the cluster."""
    NOT_JUDGED = "not_judged"
    """Managed, and a file with problems declared it last, or may declare it now."""
    CLEARED = "cleared"
    """On neither side, but recorded by a run that did not reach verify."""


class Action(StrEnum):
    """What a plan does with a row."""

    SET = "set"
    CLEAR = "clear"
    RECORD = "record"
    """Nothing on the cluster; verify writes the row to the ledger."""
    FORGET = "forget"
    """Nothing on the cluster; verify takes the row out of the ledger."""
    REPORT = "report"
    """Nothing is written; reports show it."""
    HELD = "held"
    """Nothing is written while a hold lasts, or a file has problems; reports show why."""


DRIFT_KINDS = frozenset({Kind.DRIFTED, Kind.CONFLICT, Kind.CHANGED_SINCE, Kind.GONE})
"""The kinds that indicate a change outside Git."""

HISTORY_KINDS = DRIFT_KINDS | {Kind.OVERRIDING}
"""The kinds that the history follows from the first look that finds them to the last."""

FOREIGN_KINDS = frozenset(
    {
        Kind.TAKEOVER,
        Kind.UNMANAGED,
        Kind.OVERRIDING,
        Kind.CONFLICT,
        Kind.CHANGED_SINCE,
        Kind.RETURNED,
    }
)
"""The kinds where a write may replace a value that another person or tool set."""

UNKNOWN_KINDS = frozenset({Kind.TAKEOVER, Kind.UNMANAGED, Kind.OVERRIDING})
"""The kinds that indicate a value on the cluster that the ledger does not have."""

EARLIER_KINDS = frozenset({Kind.LATE_WRITE, Kind.RETURNED})
"""The kinds that indicate that the cluster has an earlier managed value again."""

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
    verified: float | None = None
    owner: str | None = None
    reason: str | None = None
    file: str | None = None
    line: int | None = None
    commit: str | None = None
    run: str | None = None
    since: str | None = None
    hands_off: str | None = None
    held: str | None = None
    memory: str | None = None
    derivation: str | None = None
    until: str | None = None
    returns_to: float | None = None
    is_return: bool | None = None
    """Whether a temporary value ended: the write restores the value that Git declared for then."""
    brokers: int | None = None
    """By how many brokers a limit of the whole cluster was divided to get `after`."""
    batch: int | None = None
    """The number of the request that writes it, from 1; None for a row that is not written."""

    @property
    def id(self) -> Key:
        """Return entity and key."""
        return Key(self.entity, self.key)

    @property
    def target(self) -> float | None:
        """The value to set on the cluster; None if the key is cleared."""
        return self.after if self.action is Action.SET else None

    @property
    def changes_value(self) -> bool:
        """Return whether the row is written, with a value that the cluster does not store."""
        return self.action in WRITES and not same(self.before, self.target)

    @property
    def restores(self) -> bool:
        """Whether it writes the value that was last verified."""
        return self.verified is not None and same(self.target, self.verified)

    @property
    def is_agreed(self) -> bool:
        """Whether a guard judged the value before: it was verified, or a temporary value ended."""
        return self.restores or bool(self.is_return)

    def find_commit(self, applied: str | None) -> str | None:
        """Return the commit that declared the value first, as far as the ledger knows it.

        For a repair, for example, that is not the one applied.
        """
        return applied if self.after is None else self.commit or applied

    @property
    def has_default(self) -> bool:
        """Whether the entity has a default part, so that the quota applies to many clients."""
        return DEFAULT_TEXT in self.entity and Entity.parse(self.entity).has_default

    @property
    def is_drift(self) -> bool:
        """Whether this row was changed outside Git."""
        return self.kind in DRIFT_KINDS

    @property
    def source(self) -> str | None:
        """The place in Git that declares the row: `payments.yaml:8`."""
        return None if self.file is None else f"{self.file}:{self.line}" if self.line else self.file


Batches = Mapping[int, Sequence[Difference]]
"""The rows of each request by its number."""


def group_by_batch(rows: Iterable[Difference]) -> dict[int, tuple[Difference, ...]]:
    """Return the rows of each request, by its number, in ascending order; no row without one."""
    batches: dict[int, list[Difference]] = {}
    for row in rows:
        if row.batch is not None:
            batches.setdefault(row.batch, []).append(row)
    return {number: tuple(batches[number]) for number in sorted(batches)}
