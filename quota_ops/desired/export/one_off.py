"""One-off changes compared with Git: whether a run reverts them, and the YAML to keep them."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from quota_ops.desired.export.quotas_text import left_out_comments, quota_entry
from quota_ops.desired.export.writable import split_writable
from quota_ops.desired.read import Desired
from quota_ops.model.entity import Entity
from quota_ops.model.filter import any_accepts
from quota_ops.model.hold import Hold, find_hold
from quota_ops.model.policy import DriftPolicy
from quota_ops.model.quota import format_limit
from quota_ops.model.rows import BatchRow, DesiredRow, StoredQuota

_UNLESS = ", unless a guard blocks it or it needs approval"
_SET_BACK = {
    DriftPolicy.REPAIR: f"the next reconcile reverts it{_UNLESS}",
    DriftPolicy.ASK: "guard drift blocks the run that would revert it",
    DriftPolicy.REPORT: "drift is only reported, so it stays",
}


class OneOff:
    """Compares one-off changes with the desired state, the holds and the pause of a cluster."""

    def __init__(
        self, desired: Desired, holds: Sequence[Hold] = (), standstill: str | None = None
    ) -> None:
        self._policy, self._holds, self._standstill = desired.policy, holds, standstill
        self._rows = {row.id: row for row in desired.rows}

    def describe_effect(self, row: BatchRow) -> str:
        """Describe what the next reconcile does to a changed row, and what prevents it."""
        declared = self._rows.get(row.id)
        if declared is not None:
            return self._compare_with_declared(row, declared)
        if row.after is None:
            return "Git does not declare it either"
        if self._policy.clear_unmanaged and any_accepts(
            self._policy.scope, Entity.parse(row.entity)
        ):
            clears = f"the next reconcile clears it{_UNLESS}{self._when}"
            return f"Git does not declare it: {self._kept(row, 'clears it') or clears}"
        return "Git does not declare it; runs leave it alone"

    def _compare_with_declared(self, row: BatchRow, declared: DesiredRow) -> str:
        place = f"{declared.file}:{declared.line}"
        if declared.value == row.after:
            return f"as {place} declares"
        wanted = format_limit(declared.key, declared.value)
        drift = self._policy.drift
        when = self._when if drift is DriftPolicy.REPAIR else ""
        kept = None if drift is DriftPolicy.REPORT else self._kept(row, "reverts it")
        return f"{place} declares {wanted}: {kept or _SET_BACK[drift] + when}"

    def _kept(self, row: BatchRow, undoes: str) -> str | None:
        """Return why no reconcile reverts the change for now; None if one may."""
        hold = find_hold(self._holds, Entity.parse(row.entity))
        if hold is not None:
            return f"no reconcile {undoes} while it is {hold.text}"
        if self._standstill is not None:
            return f"no reconcile {undoes} while the cluster is {self._standstill}"
        return None

    @property
    def _when(self) -> str:
        return f" (schedule {self._policy.schedule})" if self._policy.schedule else ""

    def to_keep(self, rows: Iterable[BatchRow]) -> Iterator[str]:
        """Yield the lines of YAML that keep the changes; none if Git declares the same."""
        ordered = sorted(rows, key=lambda row: row.entity)
        for entity, group in groupby(ordered, key=lambda row: row.entity):
            changes = {row.key: row.after for row in group}
            declared = {key: row for (one, key), row in self._rows.items() if one == entity}
            if all(
                value == (declared[key].value if key in declared else None)
                for key, value in changes.items()
            ):
                continue
            yield from self._entry(entity, declared, changes)

    def _entry(
        self, entity: str, declared: dict[str, DesiredRow], changes: dict[str, float | None]
    ) -> Iterator[str]:
        place = next((f"{row.file}:{row.line}" for row in declared.values()), None)
        values = {key: row.value for key, row in declared.items()} | changes
        stored = [
            StoredQuota(Entity.parse(entity), key, value)
            for key, value in values.items()
            if value is not None
        ]
        if not stored:
            yield f"  # {place}: remove the entry of {entity}\n"
            return
        writable, left_out = split_writable(stored)
        if writable and place is not None:
            yield f"  # {place}: replaces the entry of {entity}\n"
        reason = next((row.reason for row in declared.values() if row.reason), None)
        yield from (quota_entry(one, reason) for one in writable)
        yield left_out_comments(left_out)
