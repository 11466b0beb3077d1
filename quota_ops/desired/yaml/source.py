"""The text of a file with places in it, and a limited list of the problems of all files."""

import re
from collections import Counter
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from functools import cached_property
from typing import NamedTuple

import yaml
from msgspec import Struct, field

from quota_ops.desired.yaml.checkout import Folder, LinkError, NotAFileError, TooLargeError
from quota_ops.model.errors import InvalidDesiredState, find_limit
from quota_ops.model.finding import Finding, Location, Problem
from quota_ops.model.text import UNSEEN

MOST_OF_A_FILE = 100
MOST = 1_000
"""The most problems that are listed for one file and for a cluster; others are counted."""
_LONGEST_MESSAGE = 1_000


class Problems(Struct):
    """The listed problems, in the order in which they were found, and the number of others."""

    listed: list[Problem] = []
    unlisted: int = 0
    _by_file: Counter[str] = field(default_factory=Counter)

    @property
    def files(self) -> AbstractSet[str]:
        """Every file that has a problem, listed or not."""
        return self._by_file.keys()

    def __len__(self) -> int:
        return len(self.listed) + self.unlisted

    def has_room(self, file: str) -> bool:
        """Whether another problem of a file would be listed; if not, its text is not needed."""
        return len(self.listed) < MOST and self._by_file[file] < MOST_OF_A_FILE

    def add(self, problem: Problem) -> None:
        """List a problem, or only count it if the list is full."""
        if not self.has_room(problem.file):
            self.count_unlisted(problem.file)
            return
        if len(problem.message) > _LONGEST_MESSAGE:
            problem = replace(problem, message=f"{problem.message[:_LONGEST_MESSAGE]}…")
        self._by_file[problem.file] += 1
        self.listed.append(problem)

    def count_unlisted(self, file: str) -> None:
        """Count a problem of a file without listing it."""
        self._by_file[file] += 1
        self.unlisted += 1

    def as_error(
        self, *, files: int, quotas: int, findings: Sequence[Finding] = ()
    ) -> InvalidDesiredState:
        """Return the error that lists the problems."""
        return InvalidDesiredState(
            self.listed,
            unlisted=self.unlisted,
            files=files,
            files_with_problems=len(self.files),
            quotas=quotas,
            findings=findings,
        )


MAX_FILE_BYTES = 16 * 2**20
"""About a hundred thousand quotas; a larger file is not desired state."""
LINK = ("This is a link, and quota-ops follows no links.", "Replace it with its target.")
LINK_ABOVE = (
    "Replace it with the folder. If no commit can change the link, pass the path of its target."
)
NOT_A_FILE = ("This is not a regular file.", "Remove it.")
_MAX_EXCERPT = 160
_FIVE_DIGITS = 0x10000

_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
_LINE_BREAK = re.compile(r"\r\n|\n|\r")
# In addition to YAML's own: line breaks of YAML 1.1 only, which would make line numbers differ
# from an editor's, and characters that reverse text, which mislead a review.
_INVISIBLE = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ufeff\ufffe\uffff]"
)
_CONFLICT = re.compile(r"^([<|=>])\1{6}(?![^ \r\n])", re.MULTILINE)
"""The lines that Git writes around both sides of a merge conflict."""


class Span(NamedTuple):
    """A part of one line; line and column count from 0."""

    line: int
    column: int
    length: int = 1


class Source(Struct, frozen=True, dict=True):
    """The text of one file, and the list that its problems are added to.

    `file` is the path as a person typed it, `name` the path below the cluster's folder, `content`
    the bytes that the text was made of.
    """

    file: str
    name: str
    text: str
    problems: Problems
    content: bytes = b""

    @cached_property
    def lines(self) -> list[str]:
        """The lines, without line ends."""
        return _LINE_BREAK.split(self.text) if "\r" in self.text else self.text.split("\n")

    @cached_property
    def has_unseen(self) -> bool:
        """Whether the text contains an invisible character."""
        return not self.text.isascii() and UNSEEN.search(self.text) is not None

    @property
    def lists_more(self) -> bool:
        """Whether another problem would be listed; if not, its remedy is not needed."""
        return self.problems.has_room(self.file)

    def place(self, node: yaml.Node) -> str:
        """Return the place of a node: `desired_state/demo/payments.yaml:8`."""
        return f"{self.file}:{node.start_mark.line + 1}"

    def locate(self, span: Span) -> Location:
        """Return where a span starts, in a file named below the cluster's folder."""
        return Location(self.name, span.line + 1, span.column + 1)

    def refuse(
        self, node: yaml.Node, message: str, remedy: str | None = None, other: Problem | None = None
    ) -> None:
        """Add a problem that underlines the node, up to the end of its first line."""
        self.refuse_at(self.find_span(node), message, remedy, other=other)

    def find_span(self, node: yaml.Node) -> Span:
        """Return the part of a node that is underlined: up to the end of its first line."""
        start, end = node.start_mark, node.end_mark
        last = end.column if end.line == start.line else len(self.lines[start.line])
        return Span(start.line, start.column, last - start.column)

    def refuse_at(
        self, span: Span, message: str, remedy: str | None = None, other: Problem | None = None
    ) -> None:
        """Add a problem that underlines a part of a line; `other` is at its other place."""
        if self.lists_more:
            problem = self.problem_at(span, message, remedy)
            self.problems.add(replace(problem, other=other))
        else:
            self.problems.count_unlisted(self.file)

    def problem_at(self, span: Span, message: str, remedy: str | None = None) -> Problem:
        """Return a problem that underlines a part of a line."""
        line, column, length = span
        excerpt = _excerpt(self.lines[line], column)
        room = 1 if excerpt is None else len(excerpt) - column
        underlined = max(1, min(length, room))
        return Problem(self.file, line + 1, column + 1, message, remedy, excerpt, underlined)

    def refuse_unseen(self, node: yaml.Node) -> bool:
        """Add a problem for an unescaped invisible character in a node; whether there is one.

        A review would not notice a name that only looks like another.
        """
        start = node.start_mark
        found = UNSEEN.search(self.text, start.index, node.end_mark.index)
        return self._refuse_char(found, start.line, start.column)

    def refuse_invisible(self) -> bool:
        """Add a problem at the first forbidden character; return whether there is one."""
        return self._refuse_char(_INVISIBLE.search(self.text))

    def refuse_conflicts(self) -> bool:
        """Add a problem for each merge conflict; return whether there is one.

        A file with half of a conflict may be valid YAML, for example within quotes.
        """
        is_conflicted = _CONFLICT.search(self.text) is not None
        is_open = False
        for number, line in enumerate(self.lines if is_conflicted else ()):
            if found := _CONFLICT.match(line):
                if not is_open:
                    message = f"{found[0]} marks a merge conflict in Git."
                    remedy = "Keep the lines that you want, and remove all lines with such marks."
                    self.refuse_at(Span(number, 0, len(found[0])), message, remedy)
                is_open = found[1] != ">"
        return is_conflicted

    def _refuse_char(self, found: re.Match[str] | None, line: int = 0, column: int = 0) -> bool:
        """Add a problem for a character that was found by a search from this place."""
        if found is None:
            return False
        *lines, last = _LINE_BREAK.split(self.text[found.pos : found.start()])
        code = ord(found[0])
        escape = f"\\u{code:04x}" if code < _FIVE_DIGITS else f"\\U{code:08x}"
        self.refuse_at(
            Span(line + len(lines), len(last) + (0 if lines else column)),
            f"This is the invisible character U+{code:04X}.",
            f'Remove it; if a name contains it, write it as "{escape}" in double quotes.',
        )
        return True


def read_source(folder: Folder, name: str, problems: Problems) -> Source | None:
    """Read a file; None, after adding a problem, if it is unreadable or not UTF-8 text."""
    file = str(folder.path / name)
    try:
        data = folder.read(name, MAX_FILE_BYTES)
    except TooLargeError as error:
        most = f"quota-ops reads up to {MAX_FILE_BYTES >> 20} MiB"
        message = f"The file is {error.size / 2**20:.0f} MiB large; {most}."
        problems.add(unread(file, message, "Split it by team."))
        return None
    except OSError as error:
        problems.add(not_opened(error, file))
        return None
    if data.startswith(_UTF_16):
        problems.add(unread(file, "The file is UTF-16.", "Save it as UTF-8."))
        return None
    try:
        source = Source(file, name, data.decode("utf-8-sig"), problems, data)
    except UnicodeDecodeError as error:
        _refuse_byte(Source(file, name, data.decode("utf-8-sig", "replace"), problems), error)
        return None
    return None if source.refuse_invisible() or source.refuse_conflicts() else source


def unread(file: str, message: str, remedy: str | None = None) -> Problem:
    """Return a problem of a whole file, at its first character."""
    return Problem(file, 1, 1, message, remedy)


def not_opened(error: OSError, file: str, what: str = "file") -> Problem:
    """Return the problem of a file or folder that was not opened; names a link, never its target.

    Raises the error itself if it is a limit of this machine rather than a fault of the file.
    """
    if find_limit(error):
        raise error
    if isinstance(error, LinkError):
        remedy = LINK_ABOVE if error.is_above else LINK[1]
        return unread(error.filename, LINK[0], remedy)
    if isinstance(error, NotAFileError):
        return unread(file, *NOT_A_FILE)
    return unread(file, f"The {what} cannot be read: {error.strerror}.")


def _refuse_byte(source: Source, error: UnicodeDecodeError) -> None:
    before = _LINE_BREAK.split(error.object[: error.start].decode("utf-8"))
    source.refuse_at(
        Span(len(before) - 1, len(before[-1])),
        f"The byte 0x{error.object[error.start]:02x} is not valid UTF-8.",
        "Save the file as UTF-8.",
    )


def _excerpt(line: str, column: int) -> str | None:
    """Return the line as a terminal may show it: printable, and not too long."""
    if column >= _MAX_EXCERPT:
        return None
    shown = "".join(char if char.isprintable() else " " for char in line[:_MAX_EXCERPT])
    return shown if len(line) <= _MAX_EXCERPT else f"{shown}…"
