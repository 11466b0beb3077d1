"""Scalars as written: flags, numbers, and text that every YAML parser reads as text."""

import json
import re
from collections.abc import Callable
from decimal import Decimal

import yaml

from quota_ops.model.moment import iso_utc, parse_time
from quota_ops.model.text import is_visible

_LONGEST_SHOWN = 60
LONGEST_NOTE = 1_000
"""The most characters of an owner or a reason."""


class Misread(ValueError):
    """A value that cannot be read, with a message and a remedy."""

    def __init__(self, message: str, remedy: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy


# Plain scalars that YAML 1.1 (https://yaml.org/type) or YAML 1.2's core schema reads as a type.
_NOT_TEXT = re.compile(
    r"""
      (?P<null> ~ | null | )
    | (?P<true_or_false> y | n | yes | no | on | off | true | false )
    | (?P<a_date> \d{4}-\d\d?-\d\d? (?: [Tt\s].* )? )
    | (?P<a_number>
          [-+]? (?: \d | \.\d ) [\d_]* (?: \.[\d_]* )? (?: e[-+]?\d+ )?
        | [-+]? \d[\d_]* (?: :[0-5]?\d )+ (?: \.[\d_]* )?
        | [-+]? 0x[\da-f_]+ | 0o[0-7]+ | [-+]? 0b[01_]+
        | [-+]? \.inf | \.nan )
    | (?P<an_instruction> << | = )
    """,
    re.VERBOSE | re.IGNORECASE | re.ASCII,
)
_NOTHING = frozenset({"", "~", "null"})
_WHOLE = re.compile(r"0|[1-9][0-9]{0,8}")
_DECIMAL = re.compile(r"(?:0|[1-9][0-9]{0,8})(?:\.[0-9]{1,9})?")
_FLAGS = {"true": True, "false": False}


def is_plain(node: yaml.Node) -> bool:
    """Whether this is a scalar without quotes, whose style is None or '' in PyYAML."""
    return isinstance(node, yaml.ScalarNode) and not node.style


def is_text(text: str) -> bool:
    """Whether every YAML parser reads this plain scalar as text."""
    return _NOT_TEXT.fullmatch(text) is None


def is_empty_scalar(node: yaml.Node) -> bool:
    """Whether this scalar is empty, or one of YAML's words for null."""
    return isinstance(node, yaml.ScalarNode) and node.value.lower() in _NOTHING


def read_text(field: str, node: yaml.Node) -> str:
    """Read a text that is not empty. Raises Misread if some YAML parser gives it another type."""
    if not isinstance(node, yaml.ScalarNode):
        raise Misread(f"{field} must be text, not a list or a mapping.")
    text: str = node.value
    if not text:
        raise Misread(f"{field} is empty.")
    if is_plain(node) and (other := _NOT_TEXT.fullmatch(text)) is not None:
        raise Misread(
            f"Some YAML parsers read {show(text)} as {str(other.lastgroup).replace('_', ' ')}.",
            f'Put it in quotes: {field}: "{show(text)}".',
        )
    return text


def text_that(
    fits: Callable[[str], object], why: str, remedy: str
) -> Callable[[str, yaml.Node], str]:
    """Return a reader of text, whose Misread says `why` about text that does not fit."""

    def read(field: str, node: yaml.Node) -> str:
        text = read_text(field, node)
        if not fits(text):
            raise Misread(f"{show(text)} {why}", remedy)
        return text

    return read


def read_note(field: str, node: yaml.Node) -> str:
    """Read a text for people, without surrounding space. Raises Misread if it is blank or too long.

    Reports repeat it in every row.
    """
    text = read_text(field, node).strip()
    if not text:
        raise Misread(f"{field} is empty.")
    if len(text) > LONGEST_NOTE:
        remedy = f"Write at most {LONGEST_NOTE:,}."
        raise Misread(f"{field} is {len(text):,} characters long.", remedy)
    return text


def read_time(field: str, node: yaml.Node) -> str:
    """Read a time with its zone as ISO 8601, UTC, to the second.

    Raises Misread for anything else.
    """
    text = node.value if isinstance(node, yaml.ScalarNode) else ""
    try:
        at = iso_utc(parse_time(text))
    except ValueError as error:
        raise Misread(f"{field}: {error}.") from None
    if ":" not in text and "T" not in text:  # its first second or its last: nobody can tell
        example = f"{text[:10]} 18:00 Europe/Berlin"
        raise Misread(f"{field}: {text!r} has no time of day.", f"Write, for example, {example}.")
    return at


def read_flag(field: str, node: yaml.Node) -> bool:
    """Read `true` or `false`, without quotes. Raises Misread for anything else."""
    if is_plain(node) and node.value in _FLAGS:
        return _FLAGS[node.value]
    raise Misread(f"{field} must be true or false.", "Write it in lower case, without quotes.")


def read_whole(field: str, node: yaml.Node) -> int:
    """Read a whole number from 0, in digits without quotes. Raises Misread for anything else."""
    return int(_digits(field, node, _WHOLE, "a whole number of one to nine digits"))


def read_positive(field: str, node: yaml.Node) -> int:
    """Read a whole number from 1, in digits without quotes. Raises Misread for anything else."""
    weight = read_whole(field, node)
    if not weight:
        raise Misread(f"{field} must be above 0.")
    return weight


def read_percent(field: str, node: yaml.Node) -> float:
    """Read a number from 0 to 100, in digits without quotes or sign. Raises Misread for others."""
    value = float(_digits(field, node, _DECIMAL, "a percentage in plain digits"))
    if value > 100:  # noqa: PLR2004 - a percentage
        raise Misread(f"{field} must not be above 100.")
    return value


def read_factor(field: str, node: yaml.Node) -> float:
    """Read a number from 1, in digits without quotes or sign. Raises Misread for others."""
    value = float(_digits(field, node, _DECIMAL, "a number in plain digits"))
    if value < 1:
        raise Misread(f"{field} must not be below 1.")
    return value


def read_multiplier(field: str, node: yaml.Node) -> Decimal:
    """Read a number above 0, in digits without quotes or sign. Raises Misread for others."""
    value = Decimal(_digits(field, node, _DECIMAL, "a number of one to nine digits", "1.5"))
    if not value:
        raise Misread(f"{field} must be above 0.")
    return value


def _digits(
    field: str, node: yaml.Node, pattern: re.Pattern[str], what: str, example: str = "20"
) -> str:
    if is_plain(node) and pattern.fullmatch(node.value):
        return str(node.value)
    raise Misread(f"{field} must be {what}.", f"For example {field}: {example}.")


def show(text: str) -> str:
    """Format any text on one harmless line: unchanged if possible, otherwise escaped."""
    short = text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…"
    return short if is_visible(short) and short.strip() == short else json.dumps(short)
