"""Rows as a table of a screen."""

from collections.abc import Callable, Sequence

from quota_ops.model.history.past import Past
from quota_ops.model.runs.verification import BrokerResult
from quota_ops.report.outline import cells
from quota_ops.report.outline.effects import effect
from quota_ops.report.outline.layout import Line, Row, Span, Table, Tone, line
from quota_ops.report.outline.past import find_since
from quota_ops.report.outline.row_status import ReportRow, RowStatus

Columns = dict[str, Callable[[ReportRow], Span]]

_TONES = {
    RowStatus.IN_SYNC: Tone.OK,
    RowStatus.OVERRIDDEN: Tone.REFUSAL,
    RowStatus.CHANGED: Tone.OK,
    RowStatus.FOUND: Tone.OK,
    RowStatus.UNREAD: Tone.CONTEXT,
    RowStatus.PENDING: Tone.CHANGE,
    RowStatus.OVERRIDING: Tone.REFUSAL,
    RowStatus.DRIFTED: Tone.CHANGE,
    RowStatus.RETURNED: Tone.CHANGE,
    RowStatus.HELD: Tone.CHANGE,
    RowStatus.NOT_JUDGED: Tone.REFUSAL,
    RowStatus.UNSETTLED: Tone.REFUSAL,
    RowStatus.UNMANAGED: Tone.CONTEXT,
    RowStatus.FORGOTTEN: Tone.CONTEXT,
}


def _mark(row: ReportRow) -> Span:
    marked = row.guarded or row.status is RowStatus.UNSETTLED
    return Span("!" if marked else "", Tone.REFUSAL)


def _source(row: ReportRow) -> Span:
    touches = cells.format_affected(row)
    note = f"({touches})" if touches else ""
    return Span("  ".join(filter(None, (cells.source(row), note))), Tone.CONTEXT)


_PLAN_COLUMNS: Columns = {
    "": _mark,
    "kind": lambda row: Span(cells.kind(row), _TONES[row.status]),
    "entity": lambda row: Span(row.difference.entity, Tone.STRONG),
    "key": lambda row: Span(row.difference.key),
    "current": lambda row: Span(cells.current(row), Tone.CONTEXT),
    "desired": lambda row: Span(cells.desired(row), Tone.STRONG),
    "change": lambda row: Span(cells.change(row), Tone.CHANGE),
    "source": _source,
}


def plan_table(rows: Sequence[ReportRow], *, applied: bool = False) -> tuple[Table, ...]:
    """Return a table of a plan's rows, each rejection below its row; empty if there are no rows."""
    table = tuple(_row(row, _PLAN_COLUMNS, _below(row)) for row in rows)
    return (Table(_headings(_PLAN_COLUMNS, applied=applied), table),) if rows else ()


def report_table(
    rows: Sequence[ReportRow],
    past: Past | None,
    *,
    applied: bool,
    brokers: Sequence[BrokerResult] = (),
) -> tuple[Table, ...]:
    """Return such a table with the columns `since` and `result`; empty if there are no rows."""
    columns = _PLAN_COLUMNS | {
        "since": lambda row: Span(find_since(row, past)),
        "result": lambda row: Span(cells.result(row, brokers), _TONES[row.status]),
    }
    table = tuple(_row(row, columns, _effect(row)) for row in rows)
    return (Table(_headings(columns, applied=applied), table),) if rows else ()


def _headings(columns: Columns, *, applied: bool) -> tuple[str, ...]:
    current = cells.current_heading(applied=applied)
    return tuple(current if name == "current" else name for name in columns)


def _row(row: ReportRow, columns: Columns, below: tuple[Line, ...] = ()) -> Row:
    return Row(tuple(cell(row) for cell in columns.values()), below)


def _below(row: ReportRow) -> tuple[Line, ...]:
    if trouble := cells.trouble(row):
        return (line(f"     {trouble}", Tone.REFUSAL),)
    why = cells.explain_left(row)
    return (*_effect(row), *((line(f"     {why}", Tone.CONTEXT),) if why else ()))


def _effect(row: ReportRow) -> tuple[Line, ...]:
    words = effect(row)
    return (line(f"     {words}", Tone.CONTEXT),) if words else ()
