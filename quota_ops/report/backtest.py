"""The screen of a backtest: how often each guard would have blocked, and which plans."""

from collections.abc import Sequence
from typing import Any

from quota_ops.model.backtest import (
    NOT_TRIED,
    Blocked,
    PastPlan,
    count_stopped_then,
    count_unknown,
)
from quota_ops.model.commit import named
from quota_ops.model.text import counted
from quota_ops.report.formats import moment
from quota_ops.report.layout import Line, Row, Screen, Span, Table, Tone, line

_GUARDS = ("guard", "plans", "rows, at most", "share, at most")
_PLANS = ("first planned", "cluster", "run", "runs", "writes", "guard", "rows", "owners", "then")


def backtest_screen(
    plans: Sequence[PastPlan], blocked: Sequence[Blocked], since: str, policy: str
) -> Screen:
    """Return the guards that would have blocked plans, and each of those plans, oldest first."""
    stopped = len({(one.plan.cluster, one.plan.first.run, one.plan.writes) for one in blocked})
    head = f"{counted(len(plans), 'plan')} since {since}; the guards of {policy} would have blocked"
    if not blocked:
        return (line(f"{head} none."), line(), *_limitations(plans))
    names = sorted({one.finding.guard for one in blocked})
    by_guard = [[one for one in blocked if one.finding.guard == name] for name in names]
    return (
        line(f"{head} {stopped:,}."),
        line(),
        Table(_GUARDS, tuple(Row(_guard_cells(some)) for some in by_guard)),
        line(),
        Table(
            _PLANS,
            tuple(
                Row(_plan_cells(one), (line(f"    {_explain(one)}", Tone.CONTEXT),))
                for one in blocked
            ),
        ),
        line(),
        *_limitations(plans),
    )


def _limitations(plans: Sequence[PastPlan]) -> Screen:
    """Return what the result leaves out, because the history does not have it."""
    then = counted(count_stopped_then(plans), "plan")
    always = (
        f"Not tried: {', '.join(NOT_TRIED)}; the history lacks what they compare with. Guards that "
        f"are not tried blocked {then} at the time."
    )
    without_clients, without_effects = count_unknown(plans)
    of_all = f"of {counted(len(plans), 'plan')}"
    sentences = {
        f"blast_radius is not tried on {without_clients:,} {of_all}: their clients were not "
        "counted, because there was no inventory that could be read.": without_clients,
        f"The guards of limits are tried on the values of rows only in {without_effects:,} "
        f"{of_all}: the runs did not record what the writes do to clients.": without_effects,
    }
    shown = (always, *(one for one, number in sentences.items() if number))
    return tuple(line(one, Tone.CONTEXT) for one in shown)


def _explain(one: Blocked) -> str:
    commit = one.plan.first.commit
    return one.finding.message + (f"; planned from {named(commit)}" if commit else "")


def _guard_cells(blocked: Sequence[Blocked]) -> Line:
    shares = [one.finding.share for one in blocked if one.finding.share is not None]
    return (
        Span(blocked[0].finding.guard, Tone.STRONG),
        Span(f"{len(blocked):,}"),
        Span(f"{max(one.finding.rows for one in blocked):,}"),
        Span(f"{max(shares):g} %" if shares else ""),
    )


def _plan_cells(one: Blocked) -> Line:
    first = one.plan.first
    if first.overridden and one.finding.guard in first.overridden.split(","):
        then = "overridden"
    elif first.blocked_by and one.finding.guard in first.blocked_by.split(","):
        then = "blocked"
    else:
        then = "not blocked"
    return (
        Span(moment(first.ended), Tone.CONTEXT),
        Span(one.plan.cluster),
        Span(first.run, Tone.CONTEXT),
        Span(f"{one.plan.runs:,}"),
        Span(f"{len(one.plan.writes):,}"),
        Span(one.finding.guard, Tone.REFUSAL),
        Span(f"{one.finding.rows:,}"),
        Span(", ".join(f"{owner or 'no owner'} {rows:,}" for owner, rows in one.owners)),
        Span(then, Tone.OK if then == "not blocked" else Tone.CHANGE),
    )


def blocked_json(one: Blocked) -> dict[str, Any]:
    """Return a plan that a guard would have blocked as JSON values."""
    first, finding = one.plan.first, one.finding
    return {
        "first_planned": first.ended,
        "cluster": one.plan.cluster,
        "run": first.run,
        "commit": first.commit,
        "runs": one.plan.runs,
        "writes": len(one.plan.writes),
        "guard": finding.guard,
        "message": finding.message,
        "rows": finding.rows,
        "share": finding.share,
        "owners": [{"owner": owner, "rows": rows} for owner, rows in one.owners],
        "blocked_by": first.blocked_by,
        "overridden": first.overridden,
    }
