"""Who says whether a plan may be applied: the options, or the person at the terminal."""

import sys
from collections.abc import Callable

import click

from quota_ops.cli.layout import TEXT, show
from quota_ops.cli.options import login
from quota_ops.cli.show import MOST
from quota_ops.model.approval import Decision, Said
from quota_ops.model.errors import Refused
from quota_ops.model.plan import SHORT, Plan
from quota_ops.report.screen import Tone, line
from quota_ops.report.screens import plan_screen
from quota_ops.run_folder import RunFolder
from quota_ops.stages.approval import refuse_unless_approves
from quota_ops.stages.asking import answered
from quota_ops.stages.plan import refuse_unless_guards_pass
from quota_ops.stages.read_report import read_report


def person(
    folder: RunFolder,
    output: str,
    *,
    approve: str | None,
    reason: str | None,
    judged_now: bool,
) -> Callable[[Plan], Decision] | None:
    """What asks a person about a run's plan; None where nobody can be asked.

    Options approve what somebody has seen: a plan made this moment may have the digest that was
    shown and other guards, so those have to be named by --allow.
    """

    def by_options(plan: Plan) -> Decision:
        refuse_unless_approves(approve or "", plan)
        if judged_now:
            refuse_unless_guards_pass(plan)
        if reason is None:
            policy = plan.policy.approval
            raise Refused(
                f"cluster.yaml says approval: {policy}, so --approve needs --reason too",
                "Nothing was written. Add --reason TEXT: it is recorded.",
            )
        return answered(folder, plan, Said.APPROVED, login(), reason)

    def at_the_terminal(plan: Plan) -> Decision:
        if approve is not None:
            refuse_unless_approves(approve, plan)
        show((*plan_screen(read_report(folder), most=MOST), line()))
        why = _why(plan)
        said = Said.APPROVED if why else Said.REJECTED
        return answered(folder, plan, said, login(), why)

    interactive = output == TEXT and sys.stdin.isatty() and sys.stdout.isatty()
    if approve is not None and (reason is not None or not interactive):
        return by_options
    return at_the_terminal if interactive else None


def _why(plan: Plan) -> str:
    asks = f"This plan needs a person: cluster.yaml says approval: {plan.policy.approval}."
    show((line(asks, Tone.CHANGE),))
    question = f"Why may plan {plan.digest[:SHORT]} be applied? (an empty answer refuses it)"
    try:
        return str(click.prompt(question, default="", show_default=False)).strip()
    except click.Abort:
        raise KeyboardInterrupt from None
