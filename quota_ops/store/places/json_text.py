"""Values as JSON text: each field, and each item of a list, on a line of its own."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

_ENCODER = msgspec.json.Encoder()
_FALLBACK = json.JSONEncoder(ensure_ascii=False, allow_nan=False, default=msgspec.to_builtins)
_NOT_PRINTABLE = re.compile(r"[^\x00-\x7e]+")


def line(value: object) -> str:
    """Return a value as one line of JSON; NaN and infinity become null."""
    try:
        return _ENCODER.encode(value).decode()  # line ends within values are escaped
    except UnicodeEncodeError:
        return _FALLBACK.encode(value)  # half a surrogate pair is not UTF-8, but has an escape


def json_text(value: Mapping[str, Any]) -> str:
    """Return a JSON object with each field, and each item of a list, on a line of its own.

    The items of an iterator are dropped as soon as they are text.
    """
    return "".join(_parts(value))  # joined once: each copy of a long text takes time


def _parts(value: Mapping[str, Any]) -> Iterator[str]:
    before = "{\n"
    for field, content in value.items():
        is_long = isinstance(content, list | Iterator)
        items = ",\n ".join(map(line, content)) if is_long else ""
        yield f"{before}{line(field)}: "
        yield from ("[\n ", items, "\n]") if items else (line([] if is_long else content),)
        before = ",\n"
    yield "\n}\n" if value else "{}\n"


def without_nulls(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that are not null, to keep large files small."""
    return {name: value for name, value in values.items() if value is not None}


def in_ascii(text: str) -> str:
    """Return the same JSON in printable ASCII, which no terminal or old program misreads."""
    is_plain = text.isascii() and "\x7f" not in text
    return text if is_plain else _NOT_PRINTABLE.sub(_escaped, text)


def _escaped(found: re.Match[str]) -> str:
    return json.dumps(found[0])[1:-1]
