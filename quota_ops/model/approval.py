"""A person's word on a plan, and which plans need one."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from shlex import quote
from typing import Any, Self

from quota_ops.model.plan import Plan
from quota_ops.model.policy import ApprovalPolicy

LARGE = 100
"""From so many changes on a person types the cluster's name to approve a plan."""


class Said(StrEnum):
    """What came of asking a person."""

    APPROVED = "approved"
    REJECTED = "rejected"
    NOTHING = "nothing"
    """Nobody answered in time."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What a person said of the plan of one digest: who, when, why, in which run."""

    said: Said
    digest: str
    guards: tuple[str, ...]
    """The guards that asked, which an approval lets pass."""
    by: str | None
    at: str
    reason: str
    run: str

    def allows(self, plan: Plan) -> bool:
        """Whether it approves this plan: the same digest, and no guard asks that did not then."""
        asking = {one.guard for one in plan.refused}
        approves = self.said is Said.APPROVED and self.digest == plan.digest
        return approves and asking.issubset(self.guards)

    def as_json(self) -> dict[str, Any]:
        """The decision as JSON values."""
        return asdict(self) | {"said": self.said.value, "guards": list(self.guards)}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Self:
        """The decision that `as_json` wrote; KeyError, TypeError or ValueError otherwise."""
        texts = {name: values[name] for name in ("digest", "at", "reason", "run")}
        by, guards = values["by"], tuple(values["guards"])
        if not all(isinstance(one, str) for one in (*texts.values(), *guards, by or "")):
            raise TypeError(f"{dict(values)!r} is not a decision")
        return cls(Said(values["said"]), guards=guards, by=by, **texts)


def needs_person(plan: Plan) -> bool:
    """Whether the policy wants a person's word before this plan is applied."""
    policy = plan.policy.approval
    if policy is ApprovalPolicy.NEVER:
        return False
    return bool(plan.refused) or (policy is ApprovalPolicy.ALWAYS and bool(plan.writes))


def needs_name(plan: Plan) -> bool:
    """Whether a person at a terminal types the cluster's name: a guard blocks, or it is large."""
    return bool(plan.guards) or len(plan.writes) >= LARGE


def approve_command(run: str, plan: Plan) -> str:
    """The command that approves and applies the plan of a run's folder, with its whole digest."""
    reason = " --reason TEXT" if needs_person(plan) else ""
    return f"quota-ops reconcile --run {quote(run)} --approve {plan.digest}{reason}"
