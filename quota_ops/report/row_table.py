"""Rows as a table of a screen."""

from collections.abc import Callable, Sequence

from quota_ops.report import cells
from quota_ops.report.screen import Line, Row, Span, Table, Tone, line
from quota_ops.report.standing import ReportRow, Section, Standing

Columns = dict[str, Callable[[ReportRow], Span]]

_TONES = {
    Standing.IN_SYNC: Tone.OK,
    Standing.CHANGED: Tone.OK,
    Standing.FOUND: Tone.OK,
    Standing.UNREAD: Tone.CONTEXT,
    Standing.PENDING: Tone.CHANGE,
    Standing.DRIFTED: Tone.CHANGE,
    Standing.RETURNED: Tone.CHANGE,
    Standing.HELD: Tone.CHANGE,
    Standing.UNSETTLED: Tone.REFUSAL,
    Standing.UNMANAGED: Tone.CONTEXT,
    Standing.FORGOTTEN: Tone.CONTEXT,
}


def _mark(row: ReportRow) -> Span:
    marked = row.guarded or row.standing is Standing.UNSETTLED
    return Span("!" if marked else "", Tone.REFUSAL)


def _source(row: ReportRow) -> Span:
    touches = "" if row.section is Section.REST else cells.touches(row.difference)
    note = f"({touches})" if touches else ""
    return Span("  ".join(filter(None, (cells.source(row), note))), Tone.CONTEXT)


PLAN_COLUMNS: Columns = {
    "": _mark,
    "kind": lambda row: Span(cells.kind(row), _TONES[row.standing]),
    "entity": lambda row: Span(row.difference.entity, Tone.STRONG),
    "key": lambda row: Span(row.difference.key),
    "current": lambda row: Span(cells.current(row), Tone.CONTEXT),
    "desired": lambda row: Span(cells.desired(row), Tone.STRONG),
    "change": lambda row: Span(cells.change(row), Tone.CHANGE),
    "source": _source,
}


def plan_table(rows: Sequence[ReportRow]) -> tuple[Table, ...]:
    """Rows as a plan shows them, each refusal below its row; nothing for no rows."""
    table = tuple(_row(row, PLAN_COLUMNS, _below(row)) for row in rows)
    return (Table(tuple(PLAN_COLUMNS), table),) if rows else ()


def report_table(rows: Sequence[ReportRow], *, read_back: bool) -> tuple[Table, ...]:
    """Rows with since when a value holds and what the brokers said; nothing for no rows."""
    columns = PLAN_COLUMNS | {
        "since": lambda row: Span(" ".join(cells.since(row))),
        "result": lambda row: Span(cells.answer(row, read_back=read_back), _TONES[row.standing]),
    }
    return (Table(tuple(columns), tuple(_row(row, columns) for row in rows)),) if rows else ()


def _row(row: ReportRow, columns: Columns, below: tuple[Line, ...] = ()) -> Row:
    return Row(tuple(cell(row) for cell in columns.values()), below)


def _below(row: ReportRow) -> tuple[Line, ...]:
    if trouble := cells.trouble(row):
        return (line(f"     {trouble}", Tone.REFUSAL),)
    why = cells.held(row) or cells.left_alone(row) or cells.origin(row)
    return (line(f"     {why}", Tone.CONTEXT),) if why else ()
