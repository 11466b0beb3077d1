"""The screens of earlier runs: the list of runs, and the record of a run without a report."""

from collections.abc import Collection, Iterable, Mapping, Sequence

from quota_ops.model.plans.approval import Decision, DecisionKind
from quota_ops.model.quotas.quota import format_limit
from quota_ops.model.quotas.rows import LedgerRow
from quota_ops.model.runs.report import RunSummary
from quota_ops.model.runs.run import Alter, LedgerEdit
from quota_ops.report.outline.formats import file_size, moment, short_commit
from quota_ops.report.outline.layout import Row, Screen, Span, Table, Tone, line, more_line
from quota_ops.report.outline.summary import SyncStatus

_TONES: Mapping[str, Tone] = {status: status.tone for status in SyncStatus}
_HEADINGS = ("when", "run", "cluster", "commit", "status", "changes", "size", "by")


def runs_screen(runs: Sequence[RunSummary], more: int, shared: Collection[str]) -> Screen:
    """Return a row for each run, the newest first, with its unreadable parts listed below it.

    A name in `shared`, which several clusters have, is shown with the id.
    """
    if not runs:
        return (line("No runs yet."),)
    rows = tuple(_run(run, shows_id=run.cluster in shared) for run in runs)
    return (Table(_HEADINGS, rows), *more_line(more, "older"))


def _run(run: RunSummary, *, shows_id: bool) -> Row:
    damaged = run.trouble is not None
    below = (line(f"    {run.trouble}", Tone.REFUSAL),) if damaged else ()
    cells = (
        Span(moment(run.started), Tone.CONTEXT),
        Span(run.run, Tone.STRONG),
        Span(f"{run.cluster} ({run.cluster_id or '?'})" if shows_id else run.cluster),
        Span(short_commit(run.commit) if run.commit else "", Tone.CONTEXT),
        Span(_status(run), _TONES.get(run.status, Tone.PLAIN)),
        Span(f"{run.changes:,}" if run.changes else ""),
        Span(file_size(run.size), Tone.CONTEXT),
        Span(", ".join(map(_describe_decision, run.decisions)) or run.by or ""),
    )
    return Row(cells, below)


def _status(run: RunSummary) -> str:
    """Return the status, and why the run ended early, such as that its plan was rejected."""
    said = {decision.said for decision in run.decisions}
    if run.status == SyncStatus.PENDING and DecisionKind.REJECTED in said:
        return "Rejected"
    return f"{run.status}, {run.stopped}" if run.stopped else run.status


def _describe_decision(decision: Decision) -> str:
    if decision.said is DecisionKind.NOTHING:
        return "no decision in time"
    who = decision.author
    if decision.said is DecisionKind.OVERRIDDEN:
        return f"{who} (--allow {', '.join(decision.guards)})"
    return who if decision.said is DecisionKind.APPROVED else f"rejected by {who}"


def record_screen(name: str, record: Alter | LedgerEdit, table: Table) -> Screen:
    """Return the record of an `alter`, `adopt` or `release`: its author, its reason, its rows."""
    return (
        line(),
        line(name, Tone.STRONG),
        *(
            line(f"{field}: {value}", Tone.CONTEXT)
            for field in ("by", "login", "reason")
            if (value := getattr(record, field))
        ),
        *((table,) if table.rows else ()),
    )


def ledger_table(rows: Iterable[LedgerRow]) -> Table:
    """Return the rows that entered or left the ledger."""
    cells = ((row.entity, row.key, format_limit(row.key, row.value)) for row in rows)
    return Table.of(("entity", "key", "value"), cells)
