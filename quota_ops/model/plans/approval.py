"""Decisions about a plan: which plans need one, and how long a decision is valid."""

import os
import pwd
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from quota_ops.model.plans.guard import GuardFinding
from quota_ops.model.plans.plan import Plan
from quota_ops.model.plans.policy import ApprovalPolicy
from quota_ops.model.text import command

LARGE = 100
"""Approving a plan with this many changes or more requires typing the cluster's name."""


class DecisionKind(StrEnum):
    """The outcome of a request for approval."""

    APPROVED = "approved"
    REJECTED = "rejected"
    NOTHING = "nothing"
    """No decision was made in time."""
    OVERRIDDEN = "overridden"
    """A person overrode guards of a run's plan by name, with `--allow`."""
    APPLIED = "applied"
    """The run began to write the plan: earlier decisions are valid for that run only."""


class Author(NamedTuple):
    """The author of a decision: the given name, and the login on the machine that recorded it."""

    by: str | None
    login: str


def find_login() -> str:
    """Return the name of the process's effective user; `uid 4711` for one without a name.

    Environment variables such as LOGNAME, which anybody can set, do not count.
    """
    user = os.geteuid()
    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:
        return f"uid {user}"


class Decision(Struct, frozen=True):
    """A person's decision about the plan with one digest: its author, time, reason and run."""

    said: DecisionKind
    digest: str
    shown: tuple[GuardFinding, ...]
    """The guards that blocked at that time, with their facts: an approval overrides only these."""
    by: str | None
    login: str | None
    """The login of the process that recorded it; None if the process recorded no login."""
    at: str
    reason: str
    run: str

    def __post_init__(self) -> None:
        """Raise ValueError if the time has no time zone."""
        if datetime.fromisoformat(self.at).tzinfo is None:
            raise ValueError(f"{self.at!r} has no time zone")

    @property
    def author(self) -> str:
        """The name of its author, which is the login unless another was given."""
        return self.by or self.login or "unknown"

    @property
    def guards(self) -> tuple[str, ...]:
        """The names of the guards that were shown."""
        return tuple(sorted({guard.guard for guard in self.shown}))


def select_valid_decisions(
    record: Iterable[Decision], run: str, now: datetime, policy: ApprovalPolicy, seconds: int
) -> tuple[Decision, ...]:
    """Return the decisions about one digest, in order, that are valid for a run now.

    A rejection revokes earlier decisions. Once a run has begun to apply the plan, other runs cannot
    use earlier approvals: a cluster that returns to an earlier state needs a new decision. An
    override is valid for its own run, an approval for any run, unless the policy is `never`. Each
    is valid for `seconds`. So of two runs that are overridden at the same time, both can succeed.
    """
    valid: list[Decision] = []
    for decision in record:
        if decision.said is DecisionKind.REJECTED:
            valid = []
        elif decision.said is DecisionKind.APPLIED and decision.run != run:
            valid = [own for own in valid if own.said is DecisionKind.OVERRIDDEN]
        elif (decision.said is DecisionKind.OVERRIDDEN and decision.run == run) or (
            decision.said is DecisionKind.APPROVED and policy is not ApprovalPolicy.NEVER
        ):
            valid.append(decision)
    oldest = now - timedelta(seconds=seconds)
    return tuple(decision for decision in valid if datetime.fromisoformat(decision.at) > oldest)


def mark_overridden(
    findings: Iterable[GuardFinding], decisions: Sequence[Decision]
) -> tuple[GuardFinding, ...]:
    """Mark each finding with the reason of the last decision whose author saw that finding."""
    reasons = [
        next((by.reason for by in reversed(decisions) if finding.is_no_worse(by.shown)), None)
        for finding in findings
    ]
    return tuple(
        replace(guard, allowed=reason) for guard, reason in zip(findings, reasons, strict=True)
    )


def needs_approval(plan: Plan) -> bool:
    """Return whether this plan needs approval before it is applied.

    The stricter of the last applied policy and the plan's own policy decides.
    """
    is_always = plan.strict_policy.approval is ApprovalPolicy.ALWAYS
    return plan.can_be_approved and bool(plan.refused or (is_always and plan.writes))


def needs_cluster_name(plan: Plan) -> bool:
    """Return whether approval requires the cluster's name: a guard blocks, or the plan is large."""
    return bool(plan.guards) or len(plan.writes) >= LARGE


def approve_command(run: str, plan: Plan) -> str:
    """Return the command that approves and applies the plan in a run folder, by its digest."""
    reason = " --reason TEXT" if needs_approval(plan) else ""
    return f"{resume_command(run, plan)}{reason}"


def resume_command(run: str, plan: Plan) -> str:
    """Return the command that resumes the run in a folder after its plan was approved."""
    return command("reconcile", run=run, approve=plan.digest)


def approval_source(plan: Plan) -> str:
    """Return which policy requires approval of a plan: its own, or the last applied one."""
    new, strict = plan.policy.approval, plan.strict_policy.approval
    if new is strict:
        return f"cluster.yaml sets approval: {new}"
    return f"the last applied policy sets approval: {strict}"
