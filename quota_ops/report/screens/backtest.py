"""The screen of a backtest: how often each guard would have blocked, and which plans."""

from collections.abc import Sequence
from typing import Any

from quota_ops.model.commit import named
from quota_ops.model.history import backtest
from quota_ops.model.plans.guard import NOT_TRIED
from quota_ops.model.text import counted
from quota_ops.report.outline.formats import moment
from quota_ops.report.outline.layout import Cells, Line, Row, Screen, Span, Table, Tone, line

_GUARDS = ("guard", "plans", "rows, at most", "share, at most")
_PLANS = ("first planned", "cluster", "run", "runs", "writes", "guard", "rows", "owners", "then")


def backtest_screen(
    plans: Sequence[backtest.PastPlan], blocked: Sequence[backtest.Blocked], since: str, policy: str
) -> Screen:
    """Return the guards that would have blocked plans, and each of those plans, oldest first."""
    stopped = len({(row.plan.cluster, row.plan.first.run, row.plan.writes) for row in blocked})
    head = f"{counted(len(plans), 'plan')} since {since}; the guards of {policy} would have blocked"
    if not blocked:
        return (line(f"{head} none."), line(), *_limitations(plans))
    names = sorted({row.finding.guard for row in blocked})
    by_guard = [[row for row in blocked if row.finding.guard == name] for name in names]
    return (
        line(f"{head} {stopped:,}."),
        line(),
        Table.of(_GUARDS, map(_guard_cells, by_guard)),
        line(),
        Table(
            _PLANS,
            tuple(
                Row(_plan_cells(row), (line(f"    {_explain(row)}", Tone.CONTEXT),))
                for row in blocked
            ),
        ),
        line(),
        *_limitations(plans),
    )


def _limitations(plans: Sequence[backtest.PastPlan]) -> Screen:
    """Return what the result leaves out, because the history does not have it."""
    then = counted(backtest.count_stopped_then(plans), "plan")
    always = (
        f"Not tried: {', '.join(NOT_TRIED)}; the history lacks what they compare with. "
        f"Guards that are not tried blocked {then} at the time."
    )
    without_clients, without_effects = backtest.count_unknown(plans)
    of_all = f"of {counted(len(plans), 'plan')}"
    sentences = {
        f"blast_radius is not tried on {without_clients:,} {of_all}: their clients were not "
        "counted, because there was no inventory that could be read.": without_clients,
        f"The guards of limits are tried on the values of rows only in {without_effects:,} "
        f"{of_all}: the runs did not record what the writes do to clients.": without_effects,
    }
    shown = (always, *(sentence for sentence, number in sentences.items() if number))
    return tuple(line(text, Tone.CONTEXT) for text in shown)


def _explain(row: backtest.Blocked) -> str:
    commit = row.plan.first.commit
    return row.finding.message + (f"; planned from {named(commit)}" if commit else "")


def _guard_cells(blocked: Sequence[backtest.Blocked]) -> Cells:
    shares = [row.finding.share for row in blocked if row.finding.share is not None]
    return (
        Span(blocked[0].finding.guard, Tone.STRONG),
        f"{len(blocked):,}",
        f"{max(row.finding.rows for row in blocked):,}",
        f"{max(shares):g} %" if shares else "",
    )


def _plan_cells(row: backtest.Blocked) -> Line:
    first = row.plan.first
    if first.overridden and row.finding.guard in first.overridden.split(","):
        then = "overridden"
    elif first.blocked_by and row.finding.guard in first.blocked_by.split(","):
        then = "blocked"
    else:
        then = "not blocked"
    return (
        Span(moment(first.ended), Tone.CONTEXT),
        Span(row.plan.cluster),
        Span(first.run, Tone.CONTEXT),
        Span(f"{row.plan.runs:,}"),
        Span(f"{len(row.plan.writes):,}"),
        Span(row.finding.guard, Tone.REFUSAL),
        Span(f"{row.finding.rows:,}"),
        Span(", ".join(f"{owner or 'no owner'} {rows:,}" for owner, rows in row.owners)),
        Span(then, Tone.OK if then == "not blocked" else Tone.CHANGE),
    )


def blocked_json(row: backtest.Blocked) -> dict[str, Any]:
    """Return a plan that a guard would have blocked as JSON values."""
    first, finding = row.plan.first, row.finding
    return {
        "first_planned": first.ended,
        "cluster": row.plan.cluster,
        "run": first.run,
        "commit": first.commit,
        "runs": row.plan.runs,
        "writes": len(row.plan.writes),
        "guard": finding.guard,
        "message": finding.message,
        "rows": finding.rows,
        "share": finding.share,
        "owners": [{"owner": owner, "rows": rows} for owner, rows in row.owners],
        "blocked_by": first.blocked_by,
        "overridden": first.overridden,
    }
