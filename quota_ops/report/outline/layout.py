"""Lines and tables of text as values, without their layout.

`plain` formats them for a pipe with the standard library alone; `terminal.py` adds colour.
"""

from collections.abc import Iterable, Iterator, Sequence
from enum import Enum, auto
from typing import NamedTuple, Self
from unicodedata import combining, east_asian_width

from msgspec import Struct

from quota_ops.report.outline.formats import escape_text

GAP = "  "
WIDEST = 60
"""The largest width of a column; a wider cell shifts only its own row."""


class Tone(Enum):
    """The meaning of a colour; the text has the same meaning without it."""

    PLAIN = auto()
    STRONG = auto()
    OK = auto()
    CHANGE = auto()
    REFUSAL = auto()
    CONTEXT = auto()


class Span(NamedTuple):
    """A piece of a line; unprintable characters in it are shown escaped."""

    text: str
    tone: Tone = Tone.PLAIN


Line = tuple[Span, ...]
Cells = Iterable[str | Span]
"""The cells of a row, each a text or a text with a tone."""


class Row(NamedTuple):
    """Cells under the headings, and the lines below them, for example a rejection."""

    cells: Line
    below: tuple[Line, ...] = ()


class Table(Struct, frozen=True):
    """Headings, and rows with a cell for each heading."""

    headings: tuple[str, ...]
    rows: tuple[Row, ...]

    @classmethod
    def of(cls, headings: tuple[str, ...], rows: Iterable[Cells]) -> Self:
        """Return a table of rows without lines below them."""
        cells = ([Span(cell) if isinstance(cell, str) else cell for cell in row] for row in rows)
        return cls(headings, tuple(Row(tuple(row)) for row in cells))

    def texts(self) -> list[tuple[str, ...]]:
        """Return the headings and the cells as they are shown."""
        rows = (tuple(escape_text(span.text) for span in row.cells) for row in self.rows)
        return [self.headings, *rows]


Screen = Sequence[Line | Table]


def line(text: str = "", tone: Tone = Tone.PLAIN) -> Line:
    """Return a line of one tone."""
    return (Span(text, tone),)


def more_line(number: int, what: str) -> tuple[Line, ...]:
    """Return the line after a list that is cut, `… and 12 more`; nothing if it has every row."""
    return (line(f"… and {number:,} {what}", Tone.CONTEXT),) if number > 0 else ()


def width(text: str) -> int:
    """Return how many terminal cells an escaped text takes; wide characters (Chinese) take two."""
    if text.isascii():
        return len(text)
    return sum(
        0 if combining(char) else 2 if east_asian_width(char) in "WF" else 1 for char in text
    )


def widths(texts: Sequence[tuple[str, ...]]) -> tuple[int, ...]:
    """Return how many terminal cells each column takes, `WIDEST` at most."""
    return tuple(min(WIDEST, max(map(width, column))) for column in zip(*texts, strict=True))


def plain(screen: Screen) -> str:
    """Return the screen as text for a pipe, without cutting, wrapping or colour."""
    return "".join(f"{text.rstrip()}\n" for block in screen for text in _plain(block))


def _plain(block: Line | Table) -> Iterator[str]:
    if not isinstance(block, Table):
        yield "".join(escape_text(span.text) for span in block)
        return
    headings, *texts = block.texts()
    wide = widths([headings, *texts])
    yield _padded(headings, wide)
    for cells, row in zip(texts, block.rows, strict=True):
        yield _padded(cells, wide)
        for spans in row.below:
            yield from _plain(spans)


def _padded(cells: tuple[str, ...], wide: tuple[int, ...]) -> str:
    return GAP.join(
        cell + " " * (most - width(cell)) for cell, most in zip(cells, wide, strict=True)
    )
