"""Parses a Java properties file as java.util.Properties.load does.

Names end at `=`, `:` or white space. A backslash escapes the next character, even a line end.
Comments begin with `#` or `!`. Unlike Java, this module rejects non-ASCII characters: Java reads
them as Latin-1, whatever the file's encoding is.
"""

import re
from collections.abc import Iterator

from quota_ops.connections import Entry
from quota_ops.model.errors import InvalidInput

_LINE_END = re.compile(r"\r\n|\r|\n")
_BLANK = " \t\f"
_NAME = re.compile(r"((?:\\.|[^\\=: \t\f])*)[ \t\f]*[=:]?[ \t\f]*", re.DOTALL)
_ESCAPE = re.compile(r"\\(?:u(?P<code>[0-9A-Fa-f]{4})|(?P<char>.?))", re.DOTALL)
_CONTROL = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def read_java(text: str, *, source: str) -> Iterator[Entry]:
    """Yield the entries in the order of the file; the place of each is its first line.

    Raises InvalidInput at a line that Java would misread.
    """
    for number, line in _logical_lines(text):
        place = f"{source}:{number}"
        if not line.isascii():
            raise InvalidInput(
                f"{place}: a character that is not ASCII; Java would misread it.",
                "Write it as \\uXXXX, for example \\u00e4 for a with an umlaut.",
            )
        _, name, value = _NAME.split(line, maxsplit=1)
        yield Entry(_unescape(name, place), _unescape(value, place), place)


def list_java_names(text: str) -> set[str]:
    """Return the names that a Java properties file with this text sets."""
    return {_NAME.split(line, maxsplit=1)[1] for _, line in _logical_lines(text)}


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield the first line number and the text of each logical line, without leading blanks."""
    first, line = 0, ""
    for number, part in enumerate(_LINE_END.split(text), start=1):
        stripped = part.lstrip(_BLANK)
        if not line:
            first = number
            if stripped[:1] in {"", "#", "!"}:
                continue
        line += stripped
        if _is_continued(stripped):
            line = line[:-1]
            continue
        yield first, line
        line = ""
    if line:
        yield first, line


def _is_continued(line: str) -> bool:
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _unescape(text: str, place: str) -> str:
    def replace(escape: re.Match[str]) -> str:
        if escape["code"]:
            return chr(int(escape["code"], 16))
        if escape["char"] == "u":
            raise InvalidInput(f"{place}: \\u without four hexadecimal digits.")
        return _CONTROL.get(escape["char"], escape["char"])

    units = _ESCAPE.sub(replace, text).encode("utf-16", "surrogatepass")
    try:
        return units.decode("utf-16")
    except UnicodeDecodeError:
        raise InvalidInput(f"{place}: half of a surrogate pair of two \\uXXXX.") from None
