"""How the demo speaks: with colours and a line that moves on a terminal, plainly in a pipe."""

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from shutil import get_terminal_size
from textwrap import wrap
from time import monotonic

from quota_ops.report.formats import duration
from quota_ops.report.screen import GAP, Line, Row, Span, Table, Tone, line, plain

MARGIN = "     "
WIDEST = 100
"""A paragraph is not laid out wider, so that it is easy to read."""
Update = Callable[[str], None]
"""Called with how far it is, while something is waited for."""


class Narration:
    """Says each of so many steps, what it came to and how long it took; remembers the times."""

    def __init__(self, steps: int) -> None:
        self._steps = steps
        self._times: list[tuple[str, float]] = []
        self._began = monotonic()

    @contextmanager
    def step(self, title: str) -> Iterator[None]:
        """Head a step; at its end say how long it took."""
        began = monotonic()
        number = f"{len(self._times) + 1}/{self._steps}  "
        self.show(line(), (Span(number, Tone.CONTEXT), Span(title, Tone.STRONG)))
        yield
        seconds = monotonic() - began
        self._times.append((title, seconds))
        self.say(f"({duration(seconds)})", Tone.CONTEXT)

    def say(self, text: str, tone: Tone = Tone.PLAIN) -> None:
        """Say a paragraph of the story, in lines that a terminal has room for."""
        width = min(get_terminal_size().columns, WIDEST) - len(MARGIN)
        lines = wrap(text, width, break_long_words=False, break_on_hyphens=False)
        self.show(*(line(f"{MARGIN}{one}", tone) for one in lines))

    def show(self, *screen: Line | Table) -> None:
        """Lay out lines and tables."""
        if sys.stdout.isatty():
            from quota_ops.report.terminal import show  # noqa: PLC0415 - rich, not for a pipe

            show(screen)
        else:
            sys.stdout.write(plain(screen))
        sys.stdout.flush()

    def table(self, headings: tuple[str, ...], rows: Iterable[Line]) -> None:
        """Lay out a table of the story."""
        margin = Span(MARGIN[len(GAP) :])
        cells = tuple(Row((margin, *row)) for row in rows)
        self.show(line(), Table((margin.text, *headings), cells), line())

    @contextmanager
    def waiting(self, text: str) -> Iterator[Update]:
        """Say what is waited for; on a terminal also how far it is, and the seconds that pass."""
        if not sys.stdout.isatty():
            self.say(f"{text} ...", Tone.CONTEXT)
            yield lambda _now: None
            return
        from rich import progress  # noqa: PLC0415 - not for a pipe

        from quota_ops.report.terminal import console  # noqa: PLC0415 - rich

        columns = (
            progress.TextColumn(MARGIN[:-1]),
            progress.SpinnerColumn(finished_text=""),
            progress.TextColumn("{task.description}", markup=False),
            progress.TimeElapsedColumn(),
        )
        with progress.Progress(*columns, console=console(sys.stdout), transient=True) as moving:
            task = moving.add_task(text, total=None)
            yield lambda now: moving.update(task, description=f"{text}  {now}")

    def times(self) -> None:
        """Say what each step took, and all of them together."""
        times = [*self._times, ("all of it", monotonic() - self._began)]
        rows = ((Span(title), Span(f"{took:6.1f} s")) for title, took in times)
        self.table(("step", "  took"), rows)
