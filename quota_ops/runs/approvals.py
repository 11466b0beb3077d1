"""A person's decision on a plan: made, found by the plan's digest, and recorded."""

from collections.abc import Callable

from quota_ops.model.errors import Refused
from quota_ops.model.plans.approval import Decision, DecisionKind
from quota_ops.model.plans.plan import SHORT, Plan
from quota_ops.stages.apply.approved_plan import state_unwritten
from quota_ops.stages.plan import plan_changes
from quota_ops.store.ledger import decisions
from quota_ops.store.run.folder import RunFolder
from quota_ops.usage.connection import PrometheusConnection


def find_approval(folder: RunFolder, plan: Plan) -> Decision | None:
    """Return the last valid approval of this digest, from any run, if it covers the plan's guards.

    Raises InvalidInput when the record is damaged.
    """
    valid = decisions.find_valid_decisions(folder, plan)
    return next(
        (
            decision
            for decision in reversed(valid)
            if decision.said is DecisionKind.APPROVED
            if all(finding.is_no_worse(decision.shown) for finding in plan.refused)
        ),
        None,
    )


def follow_decision(
    folder: RunFolder, decision: Decision, find_use: Callable[[str], PrometheusConnection]
) -> None:
    """Record a decision on the run's plan, and check an approved plan with the guards again.

    Raises Refused when the decision is not an approval, has no reason, or is for another plan.
    """
    plan, nothing = folder.plan(), state_unwritten(folder)
    _require_review(plan, decision, nothing)
    _record(folder, decision)
    _require_approval(decision, nothing)
    if plan.refused:
        with folder.stage("plan"):
            plan_changes(folder, find_use=find_use)


def _require_review(plan: Plan, decision: Decision, nothing: str) -> None:
    """Raise Refused, so that nothing is recorded, if a decision is not one about this very plan."""
    who, short = decision.by or _UNKNOWN, decision.digest[:SHORT]
    if decision.digest != plan.digest:
        raise Refused(
            f"the decision of {who} is for plan {short}, and this plan is {plan.digest[:SHORT]}",
            f"{nothing} Review the plan again.",
        )
    if more := {guard.guard for guard in plan.refused if not guard.is_no_worse(decision.shown)}:
        raise Refused(
            f"{who} reviewed plan {short} before {', '.join(sorted(more))} blocked it",
            f"{nothing} Review the plan again.",
        )
    if decision.said is DecisionKind.APPROVED and not decision.reason:
        raise Refused(
            f"{who} approved plan {short} without a reason",
            f"{nothing} In Airflow, clear the task approve or trigger a new run, and approve with "
            "a reason: it is recorded.",
        )


def _record(folder: RunFolder, decision: Decision) -> None:
    """Add a new decision on this run to the record, and to the run's copy."""
    is_new = decision not in folder.decisions() and decision.run == folder.place.name
    if is_new and decision.said is not DecisionKind.NOTHING:
        decisions.append(folder.records.approvals, decision)
    decisions.copy_to_run(folder, (decision,))


def _require_approval(decision: Decision, nothing: str) -> None:
    """Raise Refused if a person rejected the plan, or nobody decided in time."""
    short = decision.digest[:SHORT]
    if decision.said is DecisionKind.REJECTED:
        why = f": {decision.reason}" if decision.reason else ""
        raise Refused(f"{decision.by or _UNKNOWN} rejected plan {short}{why}", nothing)
    if decision.said is DecisionKind.NOTHING:
        raise Refused(f"plan {short} was not approved in time", nothing)


_UNKNOWN = "an unknown user"
