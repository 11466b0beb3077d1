"""Screens and progress in colour, for a terminal; rich obeys NO_COLOR and TERM."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from rich.console import Console
from rich.padding import Padding
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Column
from rich.table import Table as Grid
from rich.text import Text

from quota_ops.report.outline.formats import escape_text
from quota_ops.report.outline.layout import GAP, Line, Row, Screen, Span, Table, Tone, widths
from quota_ops.report.text.progress import ProgressText

NARROWEST = 12
"""A column is folded down to this many cells before the terminal wraps its rows."""
FIRST_LINE, INDENT = 4, 5
"""Columns on the first line of a row that needs two, and the indent of the second line."""

STYLES = {
    Tone.PLAIN: "",
    Tone.STRONG: "bold",
    Tone.OK: "green",
    Tone.CHANGE: "yellow",
    Tone.REFUSAL: "bold red",
    Tone.CONTEXT: "dim",
}


def console(stream: TextIO) -> Console:
    """Return a console that prints text unchanged: no markup, no emoji codes, no highlights."""
    return Console(file=stream, markup=False, emoji=False, highlight=False)


def show(screen: Screen, stream: TextIO | None = None) -> None:
    """Print a screen at the width of the terminal; long cells fold within their column."""
    out = console(stream or sys.stdout)
    for block in screen:
        if isinstance(block, Table):
            _show_table(block, out)
        else:
            out.print(_text(block), soft_wrap=True)


def _text(line: Line) -> Text:
    return Text.assemble(*((escape_text(span.text), STYLES[span.tone]) for span in line))


def _show_table(table: Table, out: Console) -> None:
    """Print one line for each row, or two if rows are too wide, so that cells stay whole."""
    wide = widths(table.texts())
    taken = sum(wide) + len(GAP) * len(wide)
    cut = len(wide) if taken <= out.width else FIRST_LINE
    headings = Row(tuple(Span(heading, Tone.CONTEXT) for heading in table.headings))
    for row in (headings, *table.rows):
        _show_cells(row.cells[:cut], wide[:cut], 0, out)
        if row.cells[cut:]:
            _show_cells(row.cells[cut:], wide[cut:], INDENT, out)
        for line in row.below:
            out.print(_text(line), soft_wrap=True)


def _show_cells(cells: Line, wide: tuple[int, ...], indent: int, out: Console) -> None:
    grid = Grid.grid(padding=(0, len(GAP), 0, 0))
    for width in fitted(wide, out.width - indent - len(GAP) * len(wide)):
        grid.add_column(width=width, overflow="fold")
    grid.add_row(*(_text((cell,)) for cell in cells))
    out.print(Padding(grid, (0, 0, 0, indent)))


def fitted(wide: tuple[int, ...], room: int) -> tuple[int, ...]:
    """Return the widths of columns, the widest reduced until all fit or reach NARROWEST."""
    fitting = list(wide)
    while sum(fitting) > room and max(fitting) > NARROWEST:
        fitting[fitting.index(max(fitting))] -= 1
    return tuple(fitting)


@contextmanager
def progress(stream: TextIO | None = None) -> Iterator[ProgressText]:
    """Yield progress that shows a bar and a text for each stage; both disappear at the end."""
    bars = Progress(
        TextColumn("{task.description}", markup=False, table_column=Column(min_width=8)),
        BarColumn(bar_width=16),
        TextColumn("{task.fields[text]}", markup=False),
        TimeElapsedColumn(),
        console=console(stream or sys.stderr),
        transient=True,
    )
    try:
        tasks = {
            stage: bars.add_task(stage, text="", total=None, start=False, visible=False)
            for stage in ("apply", "verify")
        }

        def show_stage(stage: str, text: str, done: int, total: int) -> None:
            bars.start()  # not before: a person may be at a prompt
            if not bars.tasks[tasks[stage]].started:
                bars.start_task(tasks[stage])
            bars.update(tasks[stage], text=text, completed=done, total=total, visible=True)

        yield ProgressText(show_stage)
    finally:
        bars.stop()
