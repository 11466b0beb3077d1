"""A plan: the changes that a run would make, with a digest that an approval can name."""

import hashlib
import json
from collections.abc import Sequence
from functools import cached_property
from math import isfinite
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from quota_ops.model.plans.effect import NO_RISK, Effect
from quota_ops.model.plans.guard import HOLDING_REPAIRS, GuardFinding
from quota_ops.model.plans.hold import Hold
from quota_ops.model.plans.policy import ApprovalPolicy, GuardThresholds, Policy
from quota_ops.model.plans.strict_policy import combine_strictly
from quota_ops.model.quotas.difference import EARLIER_KINDS, WRITES, Action, Difference, Kind
from quota_ops.model.quotas.quota import QUOTA_KEYS, find_change, find_factor, limits_a_client
from quota_ops.model.quotas.rows import Key

SHORT = 8
"""How many characters of a digest people compare; it is easy to make two plans that share them."""

NAMED = 32
"""The minimum number of digest characters that name a plan in an approval: 128 bits."""

_DIFFER = frozenset({Kind.PENDING, Kind.TAKEOVER}) | EARLIER_KINDS
_REPAIRED = frozenset({Kind.DRIFTED, Kind.LATE_WRITE})


class PlanHead(Struct, frozen=True):
    """What a plan has besides its rows."""

    policy: Policy
    commit: str | None
    guards: tuple[GuardFinding, ...]
    desired: int
    actual: int
    batches: int
    ledger: str | None
    """The ledger file that the plan was made from, or None when there was no ledger."""
    holds: tuple[Hold, ...] = ()
    """The holds that were in force when the cluster was described."""
    standstill: str | None = None
    """Why runs could not write when the plan was made; None if they could."""
    applied_policy: Policy | None = None
    """The policy that was last applied, which the guards use as well."""

    @property
    def head(self) -> dict[str, Any]:
        """The values of these fields by name."""
        return {name: getattr(self, name) for name in PlanHead.__match_args__}


class Plan(PlanHead, frozen=True, dict=True):
    """The differences of a run with the guards that block it, and a digest of the writes."""

    differences: tuple[Difference, ...] = ()
    """The differences, sorted by `rank_by_risk`, the riskiest first."""
    overridden: int = 0
    """How many rows the cluster stores as in Git, but not for all clients: overriding rows, or rows
    that the plan clears, come first."""

    def with_guards(self, guards: tuple[GuardFinding, ...]) -> "Plan":
        """Return the plan with these guards."""
        return self if guards == self.guards else replace(self, guards=guards)

    @cached_property
    def strict_policy(self) -> Policy:
        """The stricter of the last applied policy and the plan's own, field by field."""
        return combine_strictly(self.applied_policy, self.policy)

    @property
    def can_be_approved(self) -> bool:
        """Whether an approval counts; without one, only an override lets a plan pass a guard."""
        return self.strict_policy.approval is not ApprovalPolicy.NEVER

    @cached_property
    def writes(self) -> tuple[Difference, ...]:
        """The rows that would be set or cleared."""
        return tuple(row for row in self.differences if row.action in WRITES)

    @property
    def differs(self) -> bool:
        """Whether the cluster differs from Git in its managed rows, whatever overrides them."""
        return any(
            row.action in WRITES or row.is_drift or row.kind in _DIFFER for row in self.differences
        )

    @property
    def in_sync(self) -> int:
        """The number of rows in Git that the cluster stores, and that apply to all their clients.

        A row that another row of Git covers is in sync.
        """
        return self.stored - self.overridden

    @property
    def stored(self) -> int:
        """The number of rows in Git that the cluster stores."""
        declared = [row for row in self.differences if row.after is not None]
        return self.desired - sum(row.kind is not Kind.IN_SYNC for row in declared)

    @property
    def refused(self) -> tuple[GuardFinding, ...]:
        """The guards that are not overridden."""
        return tuple(guard for guard in self.guards if guard.allowed is None)

    @cached_property
    def repairs(self) -> tuple[Difference, ...]:
        """The writes that a run makes although guards block the plan; empty if none blocks it.

        They restore values that were last verified, and no guard found one of them. None is made
        if every plan needs approval, or a guard that blocks is about the commit, the policy or the
        ledger.
        """
        return self._list_repairs(self.refused)

    @cached_property
    def undecided(self) -> frozenset[Key]:
        """The repairs before anybody overrode a guard: no decision is about them."""
        return frozenset(row.id for row in self._list_repairs(self.guards))

    def _list_repairs(self, blocking: Sequence[GuardFinding]) -> tuple[Difference, ...]:
        guards = {finding.guard for finding in blocking}
        is_always = self.strict_policy.approval is ApprovalPolicy.ALWAYS
        if not guards or is_always or guards & HOLDING_REPAIRS:
            return ()
        return tuple(row for row in self.writes if row.restores and row.kind in _REPAIRED)

    @property
    def waiting(self) -> tuple[Difference, ...]:
        """The writes that wait until somebody overrides the guards; empty if none blocks."""
        repairs = {row.id for row in self.repairs}
        return tuple(row for row in self.writes if row.id not in repairs) if self.refused else ()

    @cached_property
    def digest(self) -> str:
        """The SHA-256 of cluster id, policy and every written (entity, key, before, after).

        It does not cover the commit: a squash merge has another commit and the same digest.
        """
        return digest(self.policy, self.writes)


def digest(policy: Policy, writes: Sequence[Difference]) -> str:
    """Return the digest of a plan, 64 hexadecimal characters; the order of rows has no effect."""
    body: dict[str, Any] = {
        "cluster_id": policy.cluster_id,
        "policy": policy.digest_fields(),
        "changes": sorted(
            [row.entity, row.key, exact(row.before), exact(row.target)] for row in writes
        ),
    }
    text = json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


def exact(value: float | None) -> str:
    """Return a value as text without loss, equal for equal values; NaN equals itself here."""
    return "none" if value is None else value.hex()


def matches_digest(approved: str, wanted: str) -> bool:
    """Return whether a typed text is the digest, or at least its first 32 characters."""
    typed = approved.strip().lower()
    return len(typed) >= NAMED and wanted.startswith(typed)


def rank_by_risk(
    row: Difference, effect: Effect | None = None
) -> tuple[int, bool, float, str, str]:
    """Return a sort key, the riskiest first: overriding, cuts, defaults, removals, raises, new.

    Rows that change no client's limit, as `effect` shows, are last. Cuts include new and removed
    quotas that cut the limit of a client, as `effect` shows; those of defaults come first, then the
    deepest.
    """
    if row.kind is Kind.OVERRIDING:
        return (-1, False, 0.0, row.entity, row.key)
    if row.action not in WRITES:
        return (9, False, 0.0, row.entity, row.key)
    if effect is not None and effect.risk == NO_RISK and effect.concerns_nobody(row.key):
        rank = 5
    elif cuts_a_client(row, effect):
        rank = 0
    elif row.has_default:
        rank = 1
    elif row.action is Action.CLEAR:
        rank = 2
    else:
        rank = 4 if row.before is None else 3
    is_number = row.before is None or isfinite(row.before)
    share = abs(change_share(row)) if is_number else 100.0
    deepest = effect.risk.cut if effect else 0.0
    return (rank, not row.has_default, -max(share, deepest), row.entity, row.key)


def cuts_a_client(row: Difference, effect: Effect | None) -> bool:
    """Return whether the value falls, or the limit of a client, as `effect` shows."""
    return is_cut(row) or (effect is not None and effect.cuts(row.key))


def is_cut(row: Difference, beyond: float = 0.0) -> bool:
    """Return whether the value falls by more than `beyond` percent.

    A value falls from Infinity or NaN in any case: Kafka before 4.4 stores both, and neither limits
    a client.
    """
    if row.before is None or (target := row.target) is None:
        return False
    if not isfinite(row.before):
        return True
    return target < row.before and -change_share(row) > beyond


def is_raise(row: Difference, factor: float) -> bool:
    """Return whether the new value is more than `factor` times the current one, and a limit."""
    target = row.target
    if not row.before or target is None or not isfinite(row.before):
        return False
    if not limits_a_client(row.key, target):
        return False
    return find_factor(row.before, target) > factor


def is_small(row: Difference, thresholds: GuardThresholds) -> bool:
    """Return whether a limit newly becomes so small that it nearly stops a busy client.

    What a temporary value returns to counts too: no guard judges the return.
    """
    key, target = QUOTA_KEYS.get(row.key), row.target
    if key is None or key.small_guard is None or target is None:
        return False
    below: float = getattr(thresholds, key.small_guard)
    if min(target, row.returns_to or target) >= below:
        return False
    return row.before is None or not row.before < below


def change_share(row: Difference) -> float:
    """Return the change in percent; 0 if a side is missing, or `before` is 0 or not finite."""
    if not row.before or not isfinite(row.before) or (target := row.target) is None:
        return 0.0
    return find_change(row.before, target)
