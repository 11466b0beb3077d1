"""Rows as a table of a screen; many rows that one profile moves are shown once."""

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from quota_ops.model.history.past import Past
from quota_ops.model.quotas.difference import WRITES
from quota_ops.model.runs.verification import BrokerResult
from quota_ops.model.text import counted, name_first
from quota_ops.report.outline import cells
from quota_ops.report.outline.effects import effect_parts
from quota_ops.report.outline.formats import escape_text
from quota_ops.report.outline.layout import Line, Row, Span, Table, Tone, line
from quota_ops.report.outline.past import find_since
from quota_ops.report.outline.row_status import ReportRow, RowStatus

Columns = dict[str, Callable[[ReportRow], Span]]


def _mark(row: ReportRow) -> Span:
    marked = row.guarded or row.status is RowStatus.UNSETTLED
    return Span("!" if marked else "", Tone.REFUSAL)


def _source(row: ReportRow) -> Span:
    touches = cells.format_affected(row)
    note = f"({touches})" if touches else ""
    return Span("  ".join(filter(None, (cells.source(row), note))), Tone.CONTEXT)


_PLAN_COLUMNS: Columns = {
    "": _mark,
    "kind": lambda row: Span(cells.kind(row), row.status.tone),
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
        "result": lambda row: Span(cells.result(row, brokers), row.status.tone),
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
    words = "; ".join(effect_parts(row))
    return (line(f"     {words}", Tone.CONTEXT),) if words else ()


_PROFILE = re.compile(r"profile [^()]*\([^()]*\)")
"""The profile in a derivation: `profile gold (cluster.yaml:5)`."""
_LEAST = 3
_NAMED = 3


class Fold(NamedTuple):
    """The rows of one key that a profile moves from one value to another."""

    profile: str
    rows: Sequence[ReportRow]

    def list_entities(self, format_name: Callable[[str], str] = escape_text) -> str:
        """Return the number of quotas, and the first of their entities."""
        named = name_first((row.difference.entity for row in self.rows), _NAMED, format_name)
        return f"{counted(len(self.rows), 'quota')}: {named}"


def fold_profiles(rows: Sequence[ReportRow]) -> tuple[list[Fold], list[ReportRow]]:
    """Return the changes of profiles that concern three quotas or more, and all other rows.

    A row that needs attention, or that says more than its values, is never folded.
    """
    groups: dict[tuple[object, ...], list[ReportRow]] = {}
    for row in rows:
        difference = row.difference
        profile = _PROFILE.search(difference.derivation or "")
        if profile and difference.action in WRITES and _is_plain(row):
            values = difference.key, difference.before, difference.target, row.status
            groups.setdefault((profile[0], *values), []).append(row)
    folds = [Fold(str(key[0]), of) for key, of in groups.items() if len(of) >= _LEAST]
    folded = {row.difference.id for fold in folds for row in fold.rows}
    return folds, [row for row in rows if row.difference.id not in folded]


def _is_plain(row: ReportRow) -> bool:
    says_more = cells.trouble(row) or cells.held(row) or cells.origin(row) or effect_parts(row)
    return not (row.guarded or row.difference.is_drift or says_more)
