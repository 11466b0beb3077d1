"""A person's decision on a plan: found again by its digest, recorded, and put into effect."""

from quota_ops.model.approval import Author, Decision, Said
from quota_ops.model.errors import Refused
from quota_ops.model.plan import SHORT, Plan
from quota_ops.stages.plan import plan_changes
from quota_ops.store import decisions
from quota_ops.store.place import Place
from quota_ops.store.run_folder import RunFolder

_NOTHING = "Nothing was written."


def read_plan(folder: RunFolder) -> Plan:
    """The plan that a run's plan stage left."""
    return folder.plan()[0]


def make_decision(
    folder: RunFolder, plan: Plan, said: Said, author: Author, reason: str
) -> Decision:
    """What somebody just said of a run's plan."""
    return decisions.new_decision(folder, plan, said, author, reason, shown=plan.guards)


def find_approval(folder: RunFolder, approvals: Place, plan: Plan) -> Decision | None:
    """The last approval of this digest that counts, of whatever run, if it lets this plan pass.

    Raises InvalidInput when what was kept of it is damaged.
    """
    counting = decisions.counting(folder, approvals, plan)
    return next(
        (
            one
            for one in reversed(counting)
            if one.said is Said.APPROVED
            if all(finding.is_no_worse(one.shown) for finding in plan.refused)
        ),
        None,
    )


def record_decision(folder: RunFolder, approvals: Place, decision: Decision) -> None:
    """Record a decision about the run's plan, and judge the plan again by it.

    Raises Refused when it is not an approval, has no reason, or is about another plan.
    """
    plan, short = read_plan(folder), decision.digest[:SHORT]
    who = decision.by or "nobody"
    if decision.digest != plan.digest:
        raise Refused(
            f"{who} was asked about plan {short}, this one is {plan.digest[:SHORT]}",
            f"{_NOTHING} Look at the plan again.",
        )
    if more := {one.guard for one in plan.refused if not one.is_no_worse(decision.shown)}:
        raise Refused(
            f"{who} was asked about plan {short} before {', '.join(sorted(more))} asked too",
            f"{_NOTHING} Look at the plan again.",
        )
    if decision.said is Said.APPROVED and not decision.reason:
        raise Refused(
            f"{who} approved plan {short} without a reason",
            f"{_NOTHING} Run again, and say why: it is recorded.",
        )
    _record(folder, approvals, decision)
    if decision.said is Said.REJECTED:
        why = f": {decision.reason}" if decision.reason else ""
        raise Refused(f"{who} rejected plan {short}{why}", _NOTHING)
    if decision.said is Said.NOTHING:
        raise Refused(f"nobody approved plan {short} in time", _NOTHING)
    if plan.refused:
        with folder.stage("plan"):
            plan_changes(folder, approvals)


def _record(folder: RunFolder, approvals: Place, decision: Decision) -> None:
    """Add to the record what was said of this run, and to the run's copy."""
    is_new = decision not in folder.decisions() and decision.run == folder.place.name
    if is_new and decision.said is not Said.NOTHING:
        decisions.append(approvals, decision)
    decisions.copy_to_run(folder, (decision,))
