"""The form that asks a person to approve a plan: a title, and Markdown that is safe to render."""

from collections.abc import Iterator
from datetime import datetime

from quota_ops.model.difference import WRITES
from quota_ops.model.guard import MEANINGS
from quota_ops.model.plan import SHORT, Plan
from quota_ops.model.report import Report
from quota_ops.model.text import counted
from quota_ops.report.formats import escape_text
from quota_ops.report.markdown import code, commit_part, table_lines
from quota_ops.report.row_status import report_rows
from quota_ops.report.sentences import NO_LEDGER, validated_words


def format_subject(report: Report, plan: Plan) -> str:
    """Return the title: the cluster, the plan, and the number of its changes."""
    what = f"plan {plan.digest[:SHORT]} ({counted(len(plan.writes), 'change')})"
    return f"{escape_text(report.cluster)}: apply {what}?"


def format_body(report: Report, plan: Plan, until: datetime) -> str:
    """Return the plan, its riskiest changes first, and why it needs approval.

    `until` is when the request times out.
    """
    rows = [row for row in report_rows(report) if row.difference.action in WRITES]
    commit = commit_part(report.provenance)
    changes = counted(len(rows), "change")
    head = [
        f"**{changes} on {code(report.cluster)}** ({code(plan.policy.cluster_id)}){commit}",
        f"\nPlan {code(plan.digest)}",
        f"\n{validated_words(report)}",
    ]
    tail = ["", *_format_reasons(plan), "", *_format_choices(until)]
    return "\n".join([*head, *table_lines(rows, (*head, *tail)), *tail]) + "\n"


def _format_reasons(plan: Plan) -> Iterator[str]:
    """Yield each reason why the plan needs approval, as a list item."""
    if not plan.refused:
        yield f"- cluster.yaml sets `approval: {plan.policy.approval}`."
    for one in plan.refused:
        yield f"- ⚠ **{one.guard}**: {code(one.message)}. {MEANINGS.get(one.guard, '')}"
    for one in plan.guards:
        if one.allowed is not None:
            yield f"- {one.guard}: {code(one.message)}. Overridden: {code(one.allowed)}"
    if plan.ledger is None:
        yield f"- {NO_LEDGER}"


def _format_choices(until: datetime) -> Iterator[str]:
    yield (
        "**Approve** writes exactly these changes; a row that changes in the meantime is "
        "skipped and reported. "
        f"**Reject**, or no decision until {until:%Y-%m-%d %H:%M} UTC, writes nothing."
    )
