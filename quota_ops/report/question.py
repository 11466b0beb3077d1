"""What a person is asked before a plan is applied: a line, and Markdown that is safe to render."""

from collections.abc import Iterator
from datetime import datetime

from quota_ops.model.difference import WRITES
from quota_ops.model.guard import MEANINGS
from quota_ops.model.plan import SHORT, Plan
from quota_ops.model.report import Report
from quota_ops.model.text import counted
from quota_ops.report.markdown import TABLE, code, commit_part, fitting, table_row
from quota_ops.report.remarks import NO_LEDGER, validated_words
from quota_ops.report.standing import report_rows
from quota_ops.report.wording import shown


def subject(report: Report, plan: Plan) -> str:
    """The question in a line: which cluster, which plan, how much."""
    what = f"plan {plan.digest[:SHORT]} ({counted(len(plan.writes), 'change')})"
    return f"{shown(report.cluster)}: apply {what}?"


def body(report: Report, plan: Plan, until: datetime) -> str:
    """The plan that is asked about, what can hurt most first, and what each guard means by asking.

    `until` is when the question is withdrawn.
    """
    rows = [row for row in report_rows(report) if row.difference.action in WRITES]
    commit = commit_part(report.provenance)
    changes = counted(len(rows), "change")
    head = [
        f"**{changes} on {code(report.cluster)}** ({code(plan.policy.cluster_id)}){commit}",
        f"\nPlan {code(plan.digest)}",
        f"\n{validated_words(report)}",
    ]
    tail = ["", *_asking(plan), "", *_answers(until)]
    told = fitting(map(table_row, rows), len(rows), (*head, *TABLE, *tail)) if rows else []
    return "\n".join([*head, *(TABLE if rows else ()), *told, *tail]) + "\n"


def _asking(plan: Plan) -> Iterator[str]:
    """Why a person is asked, an item each."""
    if not plan.refused:
        yield f"- cluster.yaml says `approval: {plan.policy.approval}`."
    for one in plan.refused:
        yield f"- ⚠ **{one.guard}**: {code(one.message)}. {MEANINGS.get(one.guard, '')}"
    for one in plan.guards:
        if one.allowed is not None:
            yield f"- {one.guard}: {code(one.message)}. Overridden: {code(one.allowed)}"
    if plan.ledger is None:
        yield f"- {NO_LEDGER}"


def _answers(until: datetime) -> Iterator[str]:
    yield (
        "**Approve** writes exactly these changes; a row that somebody changes meanwhile is left "
        "alone and reported. "
        f"**Reject**, or no decision until {until:%Y-%m-%d %H:%M} UTC, writes nothing."
    )
