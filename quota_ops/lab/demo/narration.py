"""The narration of the demo: in colour with a progress line on a terminal, plain text in a pipe."""

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from shutil import get_terminal_size
from textwrap import wrap
from time import monotonic

from quota_ops.report.outline.formats import duration
from quota_ops.report.outline.layout import GAP, Line, Span, Table, Tone, line, plain

MARGIN = "     "
WIDEST = 100
"""The largest width of a paragraph, for easy reading."""
Update = Callable[[str], None]
"""Called with the progress of something that the demo waits for."""


class Narration:
    """Shows each step, its text and its duration, and records the durations."""

    def __init__(self, steps: int) -> None:
        self._steps = steps
        self._times: list[tuple[str, float]] = []
        self._began = monotonic()

    @contextmanager
    def show_step(self, title: str) -> Iterator[None]:
        """Show the title of a step, and its duration when it ends."""
        began = monotonic()
        number = f"{len(self._times) + 1}/{self._steps}  "
        self.show_screen(line(), (Span(number, Tone.CONTEXT), Span(title, Tone.STRONG)))
        yield
        seconds = monotonic() - began
        self._times.append((title, seconds))
        self.show_text(f"({duration(seconds)})", Tone.CONTEXT)

    def show_text(self, text: str, tone: Tone = Tone.PLAIN) -> None:
        """Show a paragraph, wrapped to the terminal's width."""
        width = min(get_terminal_size().columns, WIDEST) - len(MARGIN)
        lines = wrap(text, width, break_long_words=False, break_on_hyphens=False)
        self.show_screen(*(line(f"{MARGIN}{text}", tone) for text in lines))

    def show_screen(self, *screen: Line | Table) -> None:
        """Show lines and tables."""
        if sys.stdout.isatty():
            from quota_ops.report.text.terminal import show  # rich, not for a pipe

            show(screen)
        else:
            sys.stdout.write(plain(screen))
        sys.stdout.flush()

    def show_table(self, headings: tuple[str, ...], rows: Iterable[Line]) -> None:
        """Show a table below the text of a step."""
        margin = Span(MARGIN[len(GAP) :])
        cells = ((margin, *row) for row in rows)
        self.show_screen(line(), Table.of((margin.text, *headings), cells), line())

    @contextmanager
    def show_wait(self, text: str) -> Iterator[Update]:
        """Show a text while the demo waits; on a terminal, also the progress and the seconds."""
        if not sys.stdout.isatty():
            self.show_text(f"{text} ...", Tone.CONTEXT)
            yield lambda _now: None
            return
        from rich import progress  # not for a pipe

        from quota_ops.report.text.terminal import console  # rich

        columns = (
            progress.TextColumn(MARGIN[:-1]),
            progress.SpinnerColumn(finished_text=""),
            progress.TextColumn("{task.description}", markup=False),
            progress.TimeElapsedColumn(),
        )
        with progress.Progress(*columns, console=console(sys.stdout), transient=True) as moving:
            task = moving.add_task(text, total=None)
            yield lambda now: moving.update(task, description=f"{text}  {now}")

    def show_times(self) -> None:
        """Show the duration of each step, and the total."""
        times = [*self._times, ("total", monotonic() - self._began)]
        rows = ((Span(title), Span(f"{took:6.1f} s")) for title, took in times)
        self.show_table(("step", "  took"), rows)
