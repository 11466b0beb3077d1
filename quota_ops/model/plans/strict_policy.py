"""The stricter of two policies, which the guards use: no commit can loosen its own check."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any, NamedTuple

from msgspec.structs import replace

from quota_ops.model.plans.ceilings import combine_ceilings
from quota_ops.model.plans.policy import (
    THRESHOLDS,
    ApprovalPolicy,
    DriftPolicy,
    GuardThresholds,
    Policy,
)
from quota_ops.model.quotas.difference import Difference, Kind
from quota_ops.model.quotas.entity import Entity
from quota_ops.model.quotas.filter import FilterIndex
from quota_ops.model.quotas.rows import Key
from quota_ops.model.usage.throttling import CutUse, Throttling

_DRIFT = (DriftPolicy.REPAIR, DriftPolicy.ASK, DriftPolicy.REPORT)
_APPROVAL = (ApprovalPolicy.NEVER, ApprovalPolicy.ON_BREACH, ApprovalPolicy.ALWAYS)
"""From the loosest to the strictest. With `never` a blocked plan cannot be approved, but the
fewest plans need approval."""


def combine_strictly(applied: Policy | None, new: Policy) -> Policy:
    """Return the new policy with the stricter of the two values in each field that guards read.

    That is the smaller threshold (the larger one for a small limit), the lower ceiling, the union
    of `protect`, and the policy that needs approval more often. Two scopes cannot be intersected as
    filters, so callers check an entity against both policies.
    """
    if applied is None:
        return new
    return replace(
        new,
        guards=_combine_thresholds(applied.guards, new.guards),
        drift=max(applied.drift, new.drift, key=_DRIFT.index),
        approval=max(applied.approval, new.approval, key=_APPROVAL.index),
        approval_valid_for=min(applied.approval_valid_for, new.approval_valid_for),
        clear_unmanaged=applied.clear_unmanaged and new.clear_unmanaged,
        protect=tuple(dict.fromkeys((*applied.protect, *new.protect))),
        ceilings=combine_ceilings(applied.ceilings, new.ceilings),
    )


def _combine_thresholds(*sides: GuardThresholds) -> GuardThresholds:
    stricter: dict[str, Any] = {}
    for name, about in THRESHOLDS.items():
        known = [value for side in sides if (value := getattr(side, name)) is not None]
        stricter[name] = about.strictest(known, default=None)
    return GuardThresholds(**stricter)


APPLIED, APPLIED_OR_MERGED = "last applied", "last applied or merged"


class Threshold(NamedTuple):
    """A number of `guards`, and its source if it does not come from cluster.yaml."""

    value: Any
    source: str


@dataclass(frozen=True)
class Grounds:
    """What the guards compare a plan with: its policy, the earlier ones, and recent use.

    `source` is what the earlier policies are: last applied or, in a review, also merged.
    """

    policy: Policy
    earlier: tuple[Policy, ...] = ()
    throttling: Throttling | None = None
    source: str = APPLIED

    @cached_property
    def strict(self) -> Policy:
        """The stricter of all these policies, field by field."""
        return reduce(combine_strictly, (*self.earlier, self.policy))

    @cached_property
    def cuts(self) -> Mapping[Key, CutUse]:
        """The cuts that were compared with recent use."""
        cuts = self.throttling.cuts if self.throttling else ()
        return {Key(cut.entity, cut.key): cut for cut in cuts}

    def find_threshold(self, name: str) -> Threshold:
        """Return a number of `guards` by its name."""
        new, strict = (getattr(policy.guards, name) for policy in (self.policy, self.strict))
        now = "not set" if new is None else f"{new:,g}"
        return Threshold(strict, "" if new == strict else f" (as {self.source}; now it is {now})")

    def is_unprotected(self, row: Difference) -> bool:
        """Return whether an earlier policy left a row alone that the new one may write."""
        return bool(self._freed) and any(is_unprotected(row) for is_unprotected in self._freed)

    @cached_property
    def _freed(self) -> list[Callable[[Difference], bool]]:
        filters = (_build_unprotected_filter(self.policy, applied) for applied in self.earlier)
        return [frees for frees in filters if frees is not None]

    @property
    def drift_words(self) -> str:
        """Return the text that names the policy which requires approval of a repair."""
        if self.policy.drift is self.strict.drift:
            return f"the policy sets {self.policy.drift}"
        return f"the {self.source} policy sets {self.strict.drift}"


def _build_unprotected_filter(
    policy: Policy, applied: Policy
) -> Callable[[Difference], bool] | None:
    """Return a test for rows that the applied policy left alone and the new one may write.

    None if there can be none.
    """
    freed = FilterIndex(set(applied.protect) - set(policy.protect))
    scope = FilterIndex(applied.scope)
    widened = set(policy.scope) != set(applied.scope)
    clears = policy.clear_unmanaged and not applied.clear_unmanaged
    if not (set(applied.protect) - set(policy.protect) or widened or clears):
        return None

    def is_unprotected(row: Difference) -> bool:
        entity = Entity.parse(row.entity)
        outside = freed.find_match(entity) is not None or scope.find_match(entity) is None
        return outside or (clears and row.kind is Kind.UNMANAGED)

    return is_unprotected
