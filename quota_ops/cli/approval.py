"""Approval of a plan, by options or at the terminal."""

import sys
from collections.abc import Callable
from functools import partial
from typing import TypeVar

import click
from msgspec.structs import replace

from quota_ops.cli.console import TEXT, show_screen
from quota_ops.cli.run_end import MOST
from quota_ops.cli.stage_options import StageOptions
from quota_ops.model.errors import Refused
from quota_ops.model.plans.approval import (
    Decision,
    DecisionKind,
    approval_source,
    needs_cluster_name,
)
from quota_ops.model.plans.plan import SHORT, Plan
from quota_ops.model.text import clean_text
from quota_ops.report.outline.layout import Tone, line
from quota_ops.report.screens.plan import plan_screen
from quota_ops.stages.apply.approved_plan import refuse_unless_approves
from quota_ops.stages.plan import refuse_unless_guards_pass
from quota_ops.stages.report.run_report import read_report
from quota_ops.store.ledger.decisions import new_decision
from quota_ops.store.run.folder import RunFolder

Answer = TypeVar("Answer")


def find_approver(
    folder: RunFolder, typed: StageOptions, *, is_new_plan: bool
) -> Callable[[Plan], Decision] | None:
    """Find who decides about a run's plan: the options, or a person; None if neither can.

    Options approve a plan that was reviewed. A new plan may have the reviewed digest but other
    guards, so --allow has to name those.
    """
    author, approve, reason = typed.author, typed.approve, typed.reason

    def decide_by_options(plan: Plan) -> Decision:
        refuse_unless_approves(approve or "", folder, plan)
        if is_new_plan:
            refuse_unless_guards_pass(plan)
        if reason is None:
            raise Refused(
                f"{approval_source(plan)}, so --approve needs --reason too",
                "Nothing was written. Add --reason TEXT: it is recorded.",
            )
        return new_decision(folder, plan, DecisionKind.APPROVED, author, reason)

    def decide_at_terminal(plan: Plan) -> Decision:
        if approve is not None:
            refuse_unless_approves(approve, folder, plan)
        report = replace(
            read_report(folder), applied=()
        )  # not yet decided, so no change counts as 'not sent'
        show_screen((*plan_screen(report, most=MOST), line()))
        if not _confirm_plan(plan):
            return new_decision(folder, plan, DecisionKind.REJECTED, author, "")
        return new_decision(folder, plan, DecisionKind.APPROVED, author, _prompt_reason())

    interactive = typed.output == TEXT and sys.stdin.isatty() and sys.stdout.isatty()
    if approve is not None and (reason is not None or not interactive):
        return decide_by_options
    return decide_at_terminal if interactive else None


def _confirm_plan(plan: Plan) -> bool:
    """Prompt for yes or no; Enter and `no` reject the plan."""
    show_screen((line(f"This plan needs approval: {approval_source(plan)}.", Tone.CHANGE),))
    what, cluster = f"plan {plan.digest[:SHORT]}", plan.policy.cluster
    if not needs_cluster_name(plan):
        return _prompt(partial(click.confirm, f"Apply {what} to {cluster}?", default=False))
    question = f"Type the name of the cluster, {cluster}, to apply {what}; Enter rejects it"
    parse = partial(_parse_name, cluster=cluster)
    return _prompt(
        lambda: bool(click.prompt(question, default="", show_default=False, value_proc=parse))
    )


def _parse_name(text: str, *, cluster: str) -> bool:
    """Return whether the plan is approved; any text but the name or `no` decides nothing."""
    if text.strip() in {"", "n", "no"}:
        return False
    if text.strip() != cluster:
        raise click.UsageError(
            f"that is not {cluster}: type {cluster} to apply, or press Enter to reject"
        )
    return True


def _prompt_reason() -> str:
    """Prompt for a reason until one is given."""
    question = "Reason (it is recorded with your name)"
    return _prompt(partial(click.prompt, question, value_proc=_parse_reason))


def _parse_reason(text: str) -> str:
    if not clean_text(text):
        raise click.UsageError("the reason is blank")
    return clean_text(text)


def _prompt(question: Callable[[], Answer]) -> Answer:
    try:
        return question()
    except click.Abort:
        raise KeyboardInterrupt from None
