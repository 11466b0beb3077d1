"""The checks before anything is written: the plan is intact, approved and validated."""

from itertools import chain

from msgspec.structs import replace

from quota_ops.model.errors import Refused
from quota_ops.model.plans import approval
from quota_ops.model.plans.plan import NAMED, SHORT, Plan, matches_digest
from quota_ops.model.quotas.difference import Batches
from quota_ops.model.quotas.tables import DIFFERENCES
from quota_ops.model.runs.outcome import Status, group_keys
from quota_ops.model.text import command, counted
from quota_ops.stages.plan import judge_plan, refuse_unless_guards_pass
from quota_ops.stages.plan.earlier_runs import read_earlier_runs
from quota_ops.stages.plan.effects import find_plan_effects
from quota_ops.stages.succession import format_new_plan_remedy
from quota_ops.store.ledger import decisions
from quota_ops.store.run.files import APPLIED, PLAN, VALIDATED
from quota_ops.store.run.folder import RunFolder


def load_plan(folder: RunFolder, approved: str | None) -> tuple[Plan, Batches]:
    """Return the run's plan and the batches that write it.

    `approved` is the digest as the approver typed it; None if only repairs are written, which no
    guard stops. Approvals and overrides are read from the run store, never from the run's own
    files. Raises InvalidInput when a file is damaged; Refused when the plan is of another
    time, the files do not belong together, the digest does not match, a guard blocks and is not
    overridden, an approval is missing, or the broker has not accepted every batch (validate-only).
    """
    if (time := folder.about().as_of) is not None:
        raise Refused(
            f"this plan shows what a run at {time} would do",
            "Nothing was written. Make a plan without --as-of.",
        )
    plan, batches = _load_intact_plan(folder), folder.batches()
    if approved is not None:
        refuse_unless_approves(approved, folder, plan)
    _judge_again(folder, plan)
    valid = decisions.find_valid_decisions(folder, plan)
    plan = plan.with_guards(approval.mark_overridden(plan.guards, valid))
    if approved is not None:
        refuse_unless_decided(folder, plan, valid)
    _refuse_unless_validated(folder, batches)
    return plan, batches


def refuse_unless_decided(
    folder: RunFolder, plan: Plan, valid: tuple[approval.Decision, ...]
) -> None:
    """Raise Refused if a plan needs a decision that is not among the valid ones."""
    refuse_unless_guards_pass(plan.with_guards(approval.mark_overridden(plan.guards, valid)))
    said = {decision.said for decision in valid}
    if approval.needs_approval(plan) and approval.DecisionKind.APPROVED not in said:
        raise build_approval_error(folder, plan)


def build_approval_error(folder: RunFolder, plan: Plan) -> Refused:
    """Return the error for a plan that needs approval, in a run that cannot request it."""
    return Refused(
        f"{approval.approval_source(plan)}, and plan {plan.digest[:SHORT]} is not approved",
        f"{state_unwritten(folder)} If you reviewed this plan: "
        + approval.approve_command(str(folder.place), plan),
    )


def refuse_unless_approves(approved: str, folder: RunFolder, plan: Plan) -> None:
    """Raise Refused when an approver gave another digest, or too few characters of this one.

    Plans that share eight characters can be made in seconds, so an approval needs at least 32.
    """
    if not matches_digest(approved, plan.digest):
        typed = approved.strip()
        if typed and plan.digest.startswith(typed.lower()):
            raise Refused(
                f"{typed} is too short to approve a plan: pass at least {NAMED} characters of its "
                "digest",
                f"{state_unwritten(folder)} If you reviewed this plan: "
                + approval.approve_command(str(folder.place), plan),
            )
        most = None if typed.lower().startswith(plan.digest[:SHORT]) else SHORT
        raise Refused(
            f"the approval is for {typed[:most]}, but this plan is {plan.digest[:most]}",
            f"{state_unwritten(folder)} Review the plan again, then approve its digest.",
        )


def state_unwritten(folder: RunFolder) -> str:
    """Return that a refused run wrote nothing, or nothing but the repairs that it wrote before."""
    return f"Nothing {'more ' if folder.has(APPLIED) else ''}was written."


def _load_intact_plan(folder: RunFolder) -> Plan:
    """Return the plan after a check of its digest."""
    if folder.digest_rows() != folder.read(PLAN).rows:
        raise Refused(
            f"{folder.place / DIFFERENCES.file} was changed after the plan was made from it",
            format_new_plan_remedy(folder),
        )
    plan, written = folder.plan(), folder.read(PLAN).digest
    if plan.digest != written:
        raise Refused(
            f"{folder.place / PLAN} was changed after it was written: its rows give the digest "
            f"{plan.digest[:SHORT]}, and the file has {written[:SHORT]}",
            format_new_plan_remedy(folder),
        )
    return plan


def _judge_again(folder: RunFolder, plan: Plan) -> None:
    if plan.policy != folder.policy():
        raise Refused(
            f"{folder.place}: policy.json is not the policy of the plan",
            format_new_plan_remedy(folder),
        )
    earlier = read_earlier_runs(folder)
    recorded = tuple(replace(guard, allowed=None) for guard in plan.guards)
    found = judge_plan(folder, plan, earlier, find_plan_effects(folder, plan))
    if earlier.policy != plan.applied_policy or found != recorded:
        raise Refused(
            f"{folder.place / PLAN} does not record what the guards find",
            format_new_plan_remedy(folder),
        )


def _refuse_unless_validated(folder: RunFolder, batches: Batches) -> None:
    outcomes = folder.outcomes(VALIDATED)
    accepted = {
        (outcome.entity, outcome.keys) for outcome in outcomes if outcome.status is Status.ACCEPTED
    }
    planned = set(group_keys(chain.from_iterable(batches.values())).items())
    if missing := len(planned - accepted):
        raise Refused(
            f"the broker has not accepted {missing:,} of {counted(len(planned), 'entity')} "
            "(validate-only)",
            f"Nothing was written. Validate it first: {command('validate', run=folder.place)}",
        )
