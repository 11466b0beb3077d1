"""A rollback: the verified changes of a run, and which of them can be rolled back."""

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple, Self

from msgspec import Struct
from msgspec.structs import replace

from quota_ops.model.commit import named
from quota_ops.model.quotas.difference import WRITES, Difference, Kind
from quota_ops.model.quotas.entity import Entity
from quota_ops.model.quotas.quota import same
from quota_ops.model.quotas.rows import Key, LedgerRow

NOT_READ_BACK = "that run did not verify it"
UNKNOWN = "it is unknown whether that run wrote it"
ALREADY = "already has its earlier value"
BEHIND = "changed outside Git since"
NOT_OURS = "the ledger does not list it as managed"
ONLY_REPORTED = "the policy sets drift: report"


class Undone(NamedTuple):
    """A row that a run changed from `before` to `after`, and its value `now`.

    `left` is why the rollback does not change the row; None if it writes `before` again. `foreign`
    is true if `before` was set outside Git: the row is not managed once it is restored. `unknown`
    is true if no response was recorded for the row.
    """

    entity: str
    key: str
    before: float | None
    after: float | None
    owner: str | None
    verified: bool
    now: float | None = None
    left: str | None = None
    foreign: bool = False
    unknown: bool = False

    @property
    def id(self) -> Key:
        """Return entity and key."""
        return Key(self.entity, self.key)


class Rollback(Struct, frozen=True):
    """The run to roll back, its commit and plan, the rollback's author and reason, and its rows."""

    run: str
    commit: str | None
    digest: str
    by: str
    reason: str
    rows: tuple[Undone, ...]
    login: str | None = None
    """The login of the process that recorded it, in addition to the given name `by`."""

    @property
    def taken(self) -> tuple[Undone, ...]:
        """The rows that the rollback restores."""
        return tuple(row for row in self.rows if row.left is None)

    @property
    def left(self) -> tuple[Undone, ...]:
        """The rows that the rollback does not change."""
        return tuple(row for row in self.rows if row.left is not None)

    def compare_with_cluster(
        self,
        stored: Mapping[Key, float],
        known: Mapping[Key, LedgerRow],
        explain_unwritable: Callable[[Entity, str], str | None],
    ) -> Self:
        """Return the rollback, compared with the cluster's current values, the ledger and a policy.

        Only a row that still has the value that the run wrote is restored, and only if a plan may
        write it: the stage check, which refuses other rows of Git, reads no row of a rollback.
        """
        return replace(
            self,
            rows=tuple(
                row._replace(
                    now=now,
                    left=_why_left(row, now, known.get(row.id))
                    or explain_unwritable(Entity.parse(row.entity), row.key),
                )
                for row in self.rows
                for now in (stored.get(row.id),)
            ),
        )

    def planned(self, differences: Iterable[Difference]) -> Self:
        """Return the rollback after the diff: rows that no plan may write stay unchanged too."""
        actions = {row.id: row for row in differences}
        return replace(
            self,
            rows=tuple(
                row if row.left else row._replace(left=_why_kept(actions[row.id]))
                for row in self.rows
            ),
        )


def _why_left(row: Undone, now: float | None, known: LedgerRow | None) -> str | None:
    if same(now, row.before):
        return ALREADY
    if not same(now, row.after):
        if known is None or not same(known.value, now):
            return BEHIND
        commit = f", {named(known.commit)}" if known.commit else ""
        return f"run {known.run} set it{commit}"
    if row.unknown:
        return UNKNOWN
    return None if row.verified else NOT_READ_BACK


def _why_kept(row: Difference) -> str | None:
    if row.action in WRITES:
        return None
    is_unmanaged = row.kind in {Kind.UNMANAGED, Kind.OVERRIDING}
    return row.held or row.hands_off or (NOT_OURS if is_unmanaged else ONLY_REPORTED)
