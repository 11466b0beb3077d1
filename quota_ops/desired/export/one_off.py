"""Stored values compared with Git: what the next run does to them, and the YAML to keep them."""

from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from itertools import groupby
from typing import NamedTuple

from quota_ops.desired.export.quotas_text import left_out_comments, quota_entry, split_writable
from quota_ops.desired.read import Desired, read_as_written
from quota_ops.model.plans.effect import Effect
from quota_ops.model.plans.guard import Guard
from quota_ops.model.plans.hold import Hold, find_hold
from quota_ops.model.plans.ledger_edits import VERIFIED, find_current, has_arrived
from quota_ops.model.plans.policy import DriftPolicy
from quota_ops.model.plans.scope import Scope
from quota_ops.model.quotas.difference import Difference
from quota_ops.model.quotas.entity import IP, Entity
from quota_ops.model.quotas.quota import format_limit, same
from quota_ops.model.quotas.rows import DesiredRow, Key, LedgerRow, StoredQuota
from quota_ops.precedence.changed_limits import ANY_IP
from quota_ops.precedence.resolution import find_shortest

_UNLESS = ", unless a guard blocks it or it needs approval"
_SET_BACK = {
    DriftPolicy.REPAIR: f"the next reconcile sets it{_UNLESS}",
    DriftPolicy.ASK: "guard drift blocks the run that would set it",
    DriftPolicy.REPORT: "drift is only reported, so it stays",
}


class OneOff:
    """Compares stored values with the desired state, the ledger, the holds and the pause."""

    def __init__(
        self,
        desired: Desired,
        known: Iterable[LedgerRow] = (),
        holds: Sequence[Hold] = (),
        standstill: str | None = None,
    ) -> None:
        self._desired = desired
        self._policy, self._holds, self._standstill = desired.policy, holds, standstill
        self._scope = Scope(desired.policy)
        self._rows = {row.id: row for row in desired.rows}
        self._known: dict[Key, list[LedgerRow]] = {}
        for row in known:
            self._known.setdefault(row.id, []).append(row)

    def describe_effect(self, row: Key, value: float | None) -> str:
        """Describe what the next reconcile does to a row of this value, and what prevents it.

        The kind of the difference decides it, as in diff.sql.
        """
        entity, declared = Entity.parse(row.entity), self._rows.get(row)
        known = self._known.get(row, ())
        verified = next((row.value for row in known if row.state == VERIFIED), None)
        is_managed = any(has_arrived(stored, value) for stored in find_current(known).values()) or (
            verified is not None and same(value, verified)
        )
        if declared is None and value is None:
            return "Git does not declare it either"
        if why := self._scope.explain_unwritable(entity, row.key):
            return f"runs leave it alone ({why})"
        if declared is not None:
            return self._compare_with_declared(
                entity, value, declared, verified, is_managed=is_managed
            )
        text = "Git does not declare it"
        ends = f"the next reconcile clears it{_UNLESS}{self._when}"
        if is_managed:
            text += ", and the ledger has this value"
        elif verified is not None:
            text += f", and the ledger has {format_limit(row.key, verified)}"
            ends = f"guard {Guard.CHANGED_SINCE} blocks the run that would clear it"
        elif not self._policy.clear_unmanaged:
            return f"{text}; runs leave it alone"
        return f"{text}: {self._kept(entity, 'clears it') or ends}"

    def find_overridden(self, row: Difference, effect: Effect | None) -> DesiredRow | None:
        """Return a declared row that an undeclared changed row replaces for some clients."""
        if row.id in self._rows or row.after is None:
            return None
        if (other := self.find_respelled(row)) or effect is None:
            return other
        taken = (
            self._rows.get(Key(limits.before.entity, row.key))
            for limits in effect.classes
            if limits.before is not None
            and limits.before.entity != row.entity
            # An equal limit that the same clients share takes nothing away.
            and (limits.after is None or not limits.before.equals(limits.after))
        )
        return next((known for known in taken if known is not None), None)

    def find_respelled(self, row: Difference) -> DesiredRow | None:
        """Return the declared row of the same address, if this is another spelling of it.

        A host name may be any declared address: the first one is returned.
        """
        if Entity.parse(row.entity).types != (IP,) or row.entity == ANY_IP:
            return None
        shortest = find_shortest(row.entity)
        if shortest is not None:
            return None if shortest == row.entity else self._rows.get(Key(shortest, row.key))
        same_key = (known for (_, key), known in sorted(self._rows.items()) if key == row.key)
        return next((known for known in same_key if find_shortest(known.entity)), None)

    def _compare_with_declared(
        self,
        entity: Entity,
        value: float | None,
        declared: DesiredRow,
        verified: float | None,
        *,
        is_managed: bool,
    ) -> str:
        place = f"{declared.file}:{declared.line}"
        if declared.value == value and not declared.needs_brokers:
            next_run = self._kept(entity, "manages it") or "the next reconcile manages it"
            return f"as {place} declares" + ("" if is_managed else f": {next_run}")
        drift, blocked = self._policy.drift, None
        if is_managed or (verified is None and value is None):  # pending in Git
            drift = DriftPolicy.REPAIR
        elif verified is None:
            blocked = Guard.TAKEOVER
        elif not same(verified, declared.value):
            blocked = Guard.CONFLICT
        when = self._when if drift is DriftPolicy.REPAIR else ""
        ends = f"guard {blocked} blocks the run that would set it" if blocked else None
        is_reported = drift is DriftPolicy.REPORT and blocked is None
        kept = None if is_reported else self._kept(entity, "sets it")
        wanted = format_limit(declared.key, declared.value)
        wanted += " per cluster" if declared.needs_brokers else ""
        return f"{place} declares {wanted}: {kept or ends or _SET_BACK[drift] + when}"

    def _kept(self, entity: Entity, does: str) -> str | None:
        """Return why no reconcile changes the entity for now; None if one may."""
        hold = find_hold(self._holds, entity)
        if hold is not None:
            return f"no reconcile {does} while it is {hold.text}"
        if self._standstill is not None:
            return f"no reconcile of these files {does} while the cluster is {self._standstill}"
        return None

    @property
    def _when(self) -> str:
        return f" (schedule {self._policy.schedule})" if self._policy.schedule else ""

    def to_keep(self, rows: Iterable[Difference]) -> Iterator[str]:
        """Yield the lines of YAML that keep the changes; none if Git declares the same."""
        ordered = sorted(rows, key=lambda row: row.entity)
        shared = _find_shared_entries(self._desired, {row.entity for row in ordered})
        for entity, group in groupby(ordered, key=lambda row: row.entity):
            changes = {row.key: row.after for row in group}
            declared = {
                key: row
                for (declared_entity, key), row in self._rows.items()
                if declared_entity == entity
            }
            if all(
                value == (declared[key].value if key in declared else None)
                for key, value in changes.items()
            ):
                continue
            yield from _keep_entity(entity, declared, changes, shared.get(entity))


class _SharedEntry(NamedTuple):
    """An entry that declares more than limits of one entity, and whether a list is all of that."""

    words: str
    is_list: bool


def _find_shared_entries(desired: Desired, entities: AbstractSet[str]) -> dict[str, _SharedEntry]:
    """Return the entries that YAML of an entity's limits cannot replace, by entity."""
    found = {}
    for file in read_as_written(desired, entities):
        for quota in file.quotas:
            more = quota.other_fields
            if quota.entity.text in entities and (quota.derivation or more):
                words = f"{quota.place} declares {quota.entity}"
                words += f" in a {quota.derivation}" if quota.derivation else ""
                words += f" with {', '.join(more)}" if more else ""
                found[quota.entity.text] = _SharedEntry(words, is_list=not more)
        for group in file.groups:
            for member in group.members:
                place = f"{file.source.file}:{member.span.line + 1}"
                words = f"{place} declares {member.entity} in group {group.name}"
                found[member.entity.text] = _SharedEntry(words, is_list=False)
    return found


def _keep_entity(
    entity: str,
    declared: dict[str, DesiredRow],
    changes: dict[str, float | None],
    shared: _SharedEntry | None,
) -> Iterator[str]:
    if shared is not None and not shared.is_list:
        yield f"  # {shared.words}: change it there\n"
        return
    place = next((f"{row.file}:{row.line}" for row in declared.values()), None)
    values = {key: row.value for key, row in declared.items()} | changes
    stored = [
        StoredQuota(Entity.parse(entity), key, value)
        for key, value in values.items()
        if value is not None
    ]
    if not stored:
        take_out = shared and f"{shared.words}: take it out there"
        yield f"  # {take_out or f'{place}: remove the entry of {entity}'}\n"
        return
    writable, left_out = split_writable(stored)
    if writable and shared is not None:
        yield f"  # {shared.words}: take it out there, and add\n"
    elif writable and place is not None:
        yield f"  # {place}: replaces the entry of {entity}\n"
    reason = next((row.reason for row in declared.values() if row.reason), None)
    yield from (quota_entry(quota, reason) for quota in writable)
    yield left_out_comments(left_out)
