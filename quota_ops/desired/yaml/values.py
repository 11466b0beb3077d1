"""Kinds of values in the YAML files: how each is read from its scalar, and its JSON Schema."""

import json
import re
from collections.abc import Callable, Collection
from datetime import UTC, datetime
from decimal import Decimal
from enum import StrEnum
from functools import partial
from typing import Any, NamedTuple, TypeVar

import yaml

from quota_ops.desired.yaml.cron import PRESETS, last_start
from quota_ops.model.code_host import Repository
from quota_ops.model.moment import DURATION_PATTERN, find_zone, iso_utc, parse_duration, parse_time
from quota_ops.model.plans.policy import CONNECTION_NAME, CONNECTION_RULE, INVENTORY
from quota_ops.model.quotas.quota import BYTE_KEY, BYTE_UNITS, QUOTA_KEYS, parse_limit
from quota_ops.model.text import is_visible
from quota_ops.model.usage.usage import LABEL as LABEL_NAME
from quota_ops.model.usage.usage import Metric, Preset

Parsed = TypeVar("Parsed")
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
_WHOLE_NUMBER = re.compile(r"0|[1-9][0-9]{0,8}")
_DECIMAL_NUMBER = re.compile(r"(?:0|[1-9][0-9]{0,8})(?:\.[0-9]{1,9})?")
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


def text_parsed_by(parse: Callable[[str], Parsed]) -> Callable[[str, yaml.Node], Parsed]:
    """Return a reader of what `parse` returns, whose Misread has the ValueError of that."""

    def read(field: str, node: yaml.Node) -> Parsed:
        text = read_text(field, node)
        try:
            return parse(text)
        except ValueError as error:
            raise Misread(f"{error}.") from None

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
        if "24:00" in text:
            wrong = f"{field}: {text!r} is not a time."
            raise Misread(wrong, "Write 00:00 of the next day.") from None
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


def show(text: str) -> str:
    """Format any text on one harmless line: unchanged if possible, otherwise escaped."""
    short = text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…"
    return short if is_visible(short) and short.strip() == short else json.dumps(short)


_CRON_FIELDS = (
    ("minute", 0, 59),
    ("hour", 0, 23),
    ("day of the month", 1, 31),
    ("month", 1, 12),
    ("day of the week", 0, 7),
)
_CRON_FIELD = re.compile(r"[0-9A-Za-z*/,#-]+")
_LONGEST_CRON = 200
_CRON_NUMBER = re.compile(r"[0-9]+")
_PLAIN_CRON = re.compile(r"\*(/[1-9][0-9]*)?|[0-9]+(-[0-9]+)?(,[0-9]+(-[0-9]+)?)*")


def read_cron(field: str, node: yaml.Node, presets: Collection[str] = ()) -> str:
    """Read five cron fields that occur at some time, or a preset. Raises Misread for anything else.

    Airflow parses them with the same croniter; an invalid schedule breaks the whole DAG file.
    """
    text = read_text(field, node)
    if text not in presets:
        others = f", or one of {', '.join(presets)}" if presets else ""
        _check_cron(text, f"{field} must be five cron fields{others}.", field)
    return text


read_schedule = partial(read_cron, presets=PRESETS)


def _check_cron(text: str, message: str, field: str) -> None:
    parts = text.split() if len(text) <= _LONGEST_CRON else []
    if len(parts) != len(_CRON_FIELDS) or not all(map(_CRON_FIELD.fullmatch, parts)):
        raise Misread(message, f'For example {field}: "*/30 * * * *", every half hour.')
    for part, (name, low, high) in zip(parts, _CRON_FIELDS, strict=True):
        for number in _CRON_NUMBER.findall(part):
            if not low <= int(number) <= high:
                raise Misread(f"The {name} must be between {low} and {high}, not {number}.")
    minute, hour, day, month, weekday = parts
    if day == month == "*" and all(map(_PLAIN_CRON.fullmatch, (minute, hour, weekday))):
        return  # these always occur, and croniter is slow to import
    try:
        last_start(text, "UTC", datetime.now(UTC))
    except ValueError as error:
        raise Misread(f"{text} never occurs: {error}.") from None


MOST_STEP = 300
"""The longest interval of scrapes, in seconds: beyond it, Prometheus has gaps by its own rules."""

Named = TypeVar("Named", bound=StrEnum)
_read_zone = text_parsed_by(lambda name: find_zone(name).key)
_read_duration = text_parsed_by(lambda text: int(parse_duration(text).total_seconds()))


class Value(NamedTuple):
    """A kind of value: `read` takes the name of its field and its node, and raises Misread."""

    read: Callable[[str, yaml.Node], Any]
    schema: dict[str, Any]

    def default(self, value: object) -> "Value":
        """Return the kind with a default in its schema; None is no default."""
        return self if value is None else Value(self.read, {**self.schema, "default": value})


def _number(kind: Callable[[str], Any], what: str, example: str = "20", **bounds: float) -> Value:
    """Return the kind of a number in digits without quotes or sign, within bounds of JSON Schema.

    It is whole if `kind` is int; `what` continues "must be" in messages.
    """
    pattern = _WHOLE_NUMBER if kind is int else _DECIMAL_NUMBER

    def read(field: str, node: yaml.Node) -> Any:
        if not (is_plain(node) and pattern.fullmatch(node.value)):
            raise Misread(f"{field} must be {what}.", f"For example {field}: {example}.")
        number = kind(node.value)
        if number < bounds.get("minimum", 0):
            raise Misread(f"{field} must not be below {bounds['minimum']}.")
        if number > bounds.get("maximum", number):
            raise Misread(f"{field} must not be above {bounds['maximum']}.")
        if number <= bounds.get("exclusiveMinimum", -1):
            raise Misread(f"{field} must be above {bounds['exclusiveMinimum']}.")
        return number

    return Value(read, {"type": "integer" if kind is int else "number", **bounds})


def one_of(words: type[Named]) -> Value:
    """Return the kind of a field that takes one of a few words."""

    def read(field: str, node: yaml.Node) -> Named:
        # Do not suggest quotes: no word is one that YAML reads as another type.
        scalar = isinstance(node, yaml.ScalarNode) and node.value
        text = scalar or read_text(field, node)
        if text not in list(words):
            listed = ", ".join(words)
            raise Misread(f"{show(text)} is not a value of {field}.", f"Write one of {listed}.")
        return words(text)

    return Value(read, {"enum": [str(word) for word in words]})


def is_cluster_id(text: str) -> bool:
    """Whether a text can be a cluster id: one printable word."""
    return text != "" and text.isprintable() and " " not in text


def _read_paused(field: str, node: yaml.Node) -> str:
    if is_plain(node) and node.value and not is_text(node.value):
        raise Misread(
            f"{field} must be a reason, not {show(node.value)}.",
            f"Write a reason, for example {field}: broker upgrade; or remove {field}.",
        )
    return read_note(field, node)


def _read_byte_rate(field: str, node: yaml.Node) -> float:
    text = node.value if isinstance(node, yaml.ScalarNode) else ""
    if text == "0":
        return 0.0
    try:
        return parse_limit(QUOTA_KEYS[BYTE_KEY], text)
    except ValueError as error:
        raise Misread(f"{field} {error}.", f"For example {field}: 16 KiB.") from None


def _read_by_use(field: str, node: yaml.Node) -> str:
    if not isinstance(node, yaml.ScalarNode) or node.value != "usage":
        raise Misread(
            f"{field} must be usage.",
            "A fixed share is the weight of a member: {user: spark, weight: 2}.",
        )
    return "usage"


def _read_inventory(field: str, node: yaml.Node) -> str:
    text = read_text(field, node)
    if not (INVENTORY.fullmatch(text) and text.isprintable()):
        raise Misread(
            f"{show(text)} is not an inventory.",
            "Write the path of a file or folder below this folder, or the address of one in a"
            " bucket, for example s3://BUCKET/clients.parquet.",
        )
    return text.rstrip("/")


def _read_metric(field: str, node: yaml.Node) -> Metric:
    text = read_text(field, node)
    try:
        return Metric.parse(text)
    except ValueError as error:
        raise Misread(
            f"{field} {error}.",
            'Write the name of a metric, with labels if need be: rate{resource="Produce"}.',
        ) from None


def _read_step(field: str, node: yaml.Node) -> int:
    seconds = _read_duration(field, node)
    if not 0 < seconds <= MOST_STEP:
        raise Misread(
            f"{field} must be from 1s to {MOST_STEP // 60}m.", "Write the interval of the scrapes."
        )
    return seconds


_ADDRESSES = (
    "Write the address of its first page, for example https://github.com/acme/quotas. For "
    "Bitbucket Server, and a host whose name does not contain github, gitlab, gitea, forgejo, "
    "codeberg or bitbucket as a part between dots, write the address of a line, for example "
    "https://code.example/acme/quotas/src/commit/{commit}/{path}#L{line}."
)


def _read_repository(field: str, node: yaml.Node) -> str:
    text = read_text(field, node)
    try:
        Repository.parse(text)
    except ValueError as error:
        raise Misread(str(error), _ADDRESSES) from None
    return text


_BYTES = f"({'|'.join(BYTE_UNITS)})(/s)?"
_CRON = r"\S+(\s+\S+){4}"
_WHOLE = "a whole number of one to nine digits"

NOTE = Value(read_note, {"type": "string", "pattern": r"\S", "maxLength": LONGEST_NOTE})
PAUSED = Value(_read_paused, NOTE.schema)
ZONE = Value(_read_zone, NOTE.schema)
FLAG = Value(read_flag, {"type": "boolean"})
WHOLE = _number(int, _WHOLE, minimum=0)
BROKER_ID = _number(int, _WHOLE, minimum=0, maximum=999_999_999)
WEIGHT = _number(int, _WHOLE, minimum=1, maximum=999_999_999)
PERCENT = _number(float, "a percentage in plain digits", minimum=0, maximum=100)
FACTOR = _number(float, "a number in plain digits", minimum=1)
MULTIPLIER = _number(Decimal, "a number of one to nine digits", "1.5", exclusiveMinimum=0)
BY_USE = Value(_read_by_use, {"const": "usage"})
BYTE_RATE = Value(
    _read_byte_rate,
    {
        "type": ["integer", "string"],
        "minimum": 0,
        "pattern": rf"^\s*(0|[1-9][0-9]*)(\.[0-9]+)?(\s*{_BYTES})?\s*$",
    },
)
DURATION = Value(_read_duration, {"type": "string", "pattern": f"^{DURATION_PATTERN}$"})
TIME = Value(
    read_time,
    {
        "type": "string",
        "pattern": r"^\s*[0-9]{4}-.*"
        r"([0-9][Zz]|[+-][0-9]{2}:?[0-9]{2}|\s[A-Za-z][A-Za-z0-9_+/-]*)\s*$",
        "patternErrorMessage": "Write a time with its zone: 2026-12-01T18:00:00Z.",
    },
)
PRESET = one_of(Preset)
LABEL = Value(
    text_that(
        LABEL_NAME.fullmatch,
        "is not the name of a label.",
        "Use only letters, digits and _, and do not start with a digit.",
    ),
    {"type": "string", "pattern": f"^{LABEL_NAME.pattern}$"},
)
METRIC = Value(_read_metric, {"type": "string", "minLength": 1})
STEP = Value(_read_step, DURATION.schema)
CRON = Value(read_cron, {"type": "string", "pattern": f"^{_CRON}$"})
SCHEDULE = Value(read_schedule, {"type": "string", "pattern": rf"^({'|'.join(PRESETS)}|{_CRON})$"})
CLUSTER_ID = Value(
    text_that(
        is_cluster_id, "is not a cluster id.", "Get the id with kafka-cluster.sh cluster-id."
    ),
    {"type": "string", "pattern": r"^\S+$"},
)
CONNECTION = Value(
    text_that(
        CONNECTION_NAME.fullmatch,
        f"is not a connection name. A name {CONNECTION_RULE}.",
        "Write the name of a connection file; addresses and secrets stay there, outside Git.",
    ),
    {"type": "string", "pattern": f"^{CONNECTION_NAME.pattern}$"},
)
INVENTORY_PATH = Value(_read_inventory, {"type": "string", "pattern": f"^({INVENTORY.pattern})$"})
REPOSITORY = Value(_read_repository, {"type": "string", "pattern": r"^https?://[^@\s/]+/[^\s]+$"})
