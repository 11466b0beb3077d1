"""A YAML file as text: read whole or refused, and the place where its problems are pointed at."""

import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import yaml

from quota_ops.model.problem import Problem

MAX_FILE_BYTES = 64 * 2**20
"""About half a million quotas; a larger file is no desired state."""
_MAX_EXCERPT = 160

_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
_LINE_BREAK = re.compile(r"\r\n|\n|\r")
# Besides what YAML forbids: line breaks that only YAML 1.1 knows, which would make our line
# numbers differ from an editor's, and the signs that reverse text, which make a review lie.
_INVISIBLE = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ufeff\ufffe\uffff]"
)


@dataclass(frozen=True)
class Source:
    """The text of one file, and the list that its problems are added to.

    `file` is the path as a person typed it, `name` the path below the cluster's folder.
    """

    file: str
    name: str
    text: str
    problems: list[Problem]

    @cached_property
    def lines(self) -> list[str]:
        """The lines, without what ends them."""
        return _LINE_BREAK.split(self.text)

    def place(self, node: yaml.Node) -> str:
        """The place of a node, `desired_state/demo/payments.yaml:8`."""
        return f"{self.file}:{node.start_mark.line + 1}"

    def refuse(self, node: yaml.Node, message: str, remedy: str | None = None) -> None:
        """Add a problem that underlines the node, up to the end of its first line."""
        start, end = node.start_mark, node.end_mark
        last = end.column if end.line == start.line else len(self.lines[start.line])
        self.refuse_at(start.line, start.column, message, remedy, length=last - start.column)

    def refuse_at(
        self, line: int, column: int, message: str, remedy: str | None = None, *, length: int = 1
    ) -> None:
        """Add a problem at a line and column that count from 0."""
        excerpt = _excerpt(self.lines[line], column)
        room = 1 if excerpt is None else len(excerpt) - column
        underlined = max(1, min(length, room))
        self.problems.append(
            Problem(self.file, line + 1, column + 1, message, remedy, excerpt, underlined)
        )


def read_source(path: Path, name: str, problems: list[Problem]) -> Source | None:
    """Read a file whole; None, and a problem, when it cannot be read or is not UTF-8 text."""
    file = str(path)
    try:
        size = path.stat().st_size
        data = path.read_bytes() if size <= MAX_FILE_BYTES else b""
    except OSError as error:
        problems.append(unread(file, f"The file cannot be read: {error.strerror}."))
        return None
    if size > MAX_FILE_BYTES:
        message = f"The file has {size / 2**20:.0f} MiB; up to {MAX_FILE_BYTES >> 20} are read."
        problems.append(unread(file, message, "Split it by team."))
        return None
    if data.startswith(_UTF_16):
        problems.append(unread(file, "The file is UTF-16.", "Save it as UTF-8."))
        return None
    try:
        source = Source(file, name, data.decode("utf-8-sig"), problems)
    except UnicodeDecodeError as error:
        _refuse_byte(Source(file, name, data.decode("utf-8-sig", "replace"), problems), error)
        return None
    return None if _refuse_invisible(source) else source


def unread(file: str, message: str, remedy: str | None = None) -> Problem:
    """The problem of a file as a whole, at its first character."""
    return Problem(file, 1, 1, message, remedy)


def _refuse_byte(source: Source, error: UnicodeDecodeError) -> None:
    before = _LINE_BREAK.split(error.object[: error.start].decode("utf-8"))
    source.refuse_at(
        len(before) - 1,
        len(before[-1]),
        f"The byte 0x{error.object[error.start]:02x} is not UTF-8.",
        "Save the file as UTF-8.",
    )


def _refuse_invisible(source: Source) -> bool:
    found = _INVISIBLE.search(source.text)
    if found is None:
        return False
    before = _LINE_BREAK.split(source.text[: found.start()])
    code = ord(found[0])
    source.refuse_at(
        len(before) - 1,
        len(before[-1]),
        f"The invisible character U+{code:04X} stands here.",
        f'Take it out; where a name holds it, write it as "\\u{code:04x}" in double quotes.',
    )
    return True


def _excerpt(line: str, column: int) -> str | None:
    """The line as a terminal may show it: one harmless character for each, and not too many."""
    if column >= _MAX_EXCERPT:
        return None
    shown = "".join(char if char.isprintable() else " " for char in line[:_MAX_EXCERPT])
    return shown if len(line) <= _MAX_EXCERPT else f"{shown}…"
