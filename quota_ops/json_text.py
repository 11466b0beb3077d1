"""Values as JSON text: an object a field a line, and each item of a list a line of its own."""

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

_NOT_ASCII = re.compile(r"[^\x00-\x7f]+")


def line(value: object) -> str:
    """A value in one line. What is not finite becomes null: name it before."""
    try:
        return msgspec.json.encode(value).decode()
    except UnicodeEncodeError:  # half a surrogate pair is no text, and JSON can say it all the same
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def lines(values: Iterable[object], indent: str) -> str:
    """Values, each in a line of its own."""
    return f",\n{indent}".join(map(line, values))


def json_text(value: Mapping[str, Any]) -> str:
    """A JSON object with a field a line, a list's item a line."""
    fields = ",\n".join(f"{line(field)}: {_lines(one)}" for field, one in value.items())
    return f"{{\n{fields}\n}}\n"


def _lines(value: object) -> str:
    return f"[\n {lines(value, ' ')}\n]" if isinstance(value, list) and value else line(value)


def in_ascii(text: str) -> str:
    """The same JSON without a character that a terminal or an old program might mistake."""
    return text if text.isascii() else _NOT_ASCII.sub(_escaped, text)


def _escaped(found: re.Match[str]) -> str:
    return json.dumps(found[0])[1:-1]
