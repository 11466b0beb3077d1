"""Values as JSON text: an object a field a line, and each item of a list a line of its own."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

_ENCODER = msgspec.json.Encoder()
_UNHURRIED = json.JSONEncoder(ensure_ascii=False, allow_nan=False)
_NOT_ASCII = re.compile(r"[^\x00-\x7f]+")


def line(value: object) -> str:
    """A value in one line. What is not finite becomes null: name it before."""
    return lines((value,), "").rstrip("\n")


def lines(values: Sequence[object], indent: str) -> str:
    """Values, each in a line of its own that ends, with a comma between each two."""
    try:
        text = _ENCODER.encode_lines(values).decode()  # no value has a line end that is not escaped
    except UnicodeEncodeError:
        # half a surrogate pair is not text, and JSON can say it all the same
        text = "".join(f"{_UNHURRIED.encode(one)}\n" for one in values)
    return text.replace("\n", f",\n{indent}", len(values) - 1)


def json_text(value: Mapping[str, Any]) -> str:
    """A JSON object with a field a line, a list's item a line."""
    return "".join(_parts(value))  # at once: of long texts every copy takes its time


def _parts(value: Mapping[str, Any]) -> Iterator[str]:
    before = "{\n"
    for field, one in value.items():
        yield f"{before}{line(field)}: "
        if isinstance(one, list) and one:
            yield "[\n "
            yield lines(one, " ")
            yield "]"
        else:
            yield line(one)
        before = ",\n"
    yield "\n}\n" if value else "{}\n"


def without_nulls(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that are not null, for rows of which there may be many thousands."""
    return {name: value for name, value in values.items() if value is not None}


def head(written: Iterable[bytes], field: str) -> bytes:
    """What `json_text` wrote, line by line, without the list of a field and what follows it.

    All of it when there is no such field.
    """
    start, kept = f'"{field}": ['.encode(), list[bytes]()
    for one in written:
        if one.lstrip().startswith(start):
            return b"".join(kept).rstrip().removesuffix(b",") + b"}"
        kept.append(one)
    return b"".join(kept)


def in_ascii(text: str) -> str:
    """The same JSON without a character that a terminal or an old program might mistake."""
    return text if text.isascii() else _NOT_ASCII.sub(_escaped, text)


def _escaped(found: re.Match[str]) -> str:
    return json.dumps(found[0])[1:-1]
