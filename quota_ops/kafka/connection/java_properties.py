"""Reads the text of a Java properties file as java.util.Properties.load does.

Names end at `=`, `:` or white space, a backslash escapes, also the end of a line, and comments
begin with `#` or `!`. One thing is refused that Java lets pass: a character beyond ASCII, which it
would read as Latin-1, in whatever encoding it was written.
"""

import re
from collections.abc import Iterator

from quota_ops.kafka.connection.settings import Entry
from quota_ops.model.errors import InvalidInput

_LINE_END = re.compile(r"\r\n|\r|\n")
_BLANK = " \t\f"
_NAME = re.compile(r"((?:\\.|[^\\=: \t\f])*)[ \t\f]*[=:]?[ \t\f]*", re.DOTALL)
_ESCAPE = re.compile(r"\\(?:u(?P<code>[0-9A-Fa-f]{4})|(?P<char>.?))", re.DOTALL)
_CONTROL = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def read_java(text: str, *, source: str) -> Iterator[Entry]:
    """The entries in the order of the file; the place is the first line of each.

    Raises InvalidInput at a line that cannot be read as it was meant.
    """
    for number, line in _logical_lines(text):
        place = f"{source}:{number}"
        if not line.isascii():
            raise InvalidInput(
                f"{place}: a character beyond ASCII, which Java does not read as it is written.",
                "Write it as \\uXXXX, for example \\u00e4 for an a with two dots.",
            )
        _, name, value = _NAME.split(line, maxsplit=1)
        yield Entry(_unescaped(name, place), _unescaped(value, place), place)


def list_java_names(text: str) -> set[str]:
    """The names that a text would have as such a file, escapes and all."""
    return {_NAME.split(line, maxsplit=1)[1] for _, line in _logical_lines(text)}


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines without blanks before them and with those that continue them, and their numbers."""
    first, line = 0, ""
    for number, part in enumerate(_LINE_END.split(text), start=1):
        more = part.lstrip(_BLANK)
        if not line:
            first = number
            if more[:1] in {"", "#", "!"}:
                continue
        line += more
        if _is_continued(more):
            line = line[:-1]
            continue
        yield first, line
        line = ""
    if line:
        yield first, line


def _is_continued(line: str) -> bool:
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _unescaped(text: str, place: str) -> str:
    def meant(escape: re.Match[str]) -> str:
        if escape["code"]:
            return chr(int(escape["code"], 16))
        if escape["char"] == "u":
            raise InvalidInput(f"{place}: \\u without four hexadecimal digits.")
        return _CONTROL.get(escape["char"], escape["char"])

    units = _ESCAPE.sub(meant, text).encode("utf-16", "surrogatepass")
    try:
        return units.decode("utf-16")
    except UnicodeDecodeError:
        raise InvalidInput(f"{place}: half of a pair of \\uXXXX that stand for one.") from None
