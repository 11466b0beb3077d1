"""Kinds of values in the YAML files: how each is read, and its JSON Schema."""

from collections.abc import Callable
from enum import StrEnum
from typing import Any, NamedTuple, TypeVar

import yaml

from quota_ops.desired.yaml import scalars
from quota_ops.desired.yaml.cron import PRESETS, read_cron, read_schedule
from quota_ops.model.code_host import Repository
from quota_ops.model.moment import DURATION_PATTERN, find_zone, parse_duration
from quota_ops.model.plans.policy import CONNECTION_NAME, CONNECTION_RULE, INVENTORY
from quota_ops.model.quotas.quota import BYTE_KEY, BYTE_UNITS, QUOTA_KEYS, parse_limit
from quota_ops.model.usage.usage import LABEL as LABEL_NAME
from quota_ops.model.usage.usage import Metric, Preset

MOST_STEP = 300
"""The longest interval of scrapes, in seconds: beyond it, Prometheus has gaps by its own rules."""

Named = TypeVar("Named", bound=StrEnum)


class Value(NamedTuple):
    """A kind of value: `read` takes the name of its field and its node, and raises Misread."""

    read: Callable[[str, yaml.Node], Any]
    schema: dict[str, Any]

    def default(self, value: object) -> "Value":
        """Return the kind with a default in its schema; None is no default."""
        return self if value is None else Value(self.read, {**self.schema, "default": value})


def one_of(policies: type[Named]) -> Value:
    """Return the kind of a field that takes one of a few words."""

    def read(field: str, node: yaml.Node) -> Named:
        # Do not suggest quotes: no policy is a word that YAML reads as another type.
        scalar = isinstance(node, yaml.ScalarNode) and node.value
        text = scalar or scalars.read_text(field, node)
        if text not in list(policies):
            words = ", ".join(policies)
            raise scalars.Misread(
                f"{scalars.show(text)} is not a valid {field} policy.", f"Write one of {words}."
            )
        return policies(text)

    return Value(read, {"enum": [str(policy) for policy in policies]})


def is_cluster_id(text: str) -> bool:
    """Whether a text can be a cluster id: one printable word."""
    return text != "" and text.isprintable() and " " not in text


_read_cluster_id = scalars.text_that(
    is_cluster_id, "is not a cluster id.", "Get the id with kafka-cluster.sh cluster-id."
)
_read_connection_name = scalars.text_that(
    CONNECTION_NAME.fullmatch,
    f"is not a connection name. A name {CONNECTION_RULE}.",
    "Write the name of a connection file; addresses and secrets stay there, outside Git.",
)


def _read_paused(field: str, node: yaml.Node) -> str:
    if scalars.is_plain(node) and node.value and not scalars.is_text(node.value):
        raise scalars.Misread(
            f"{field} must be a reason, not {scalars.show(node.value)}.",
            f"Write a reason, for example {field}: broker upgrade; or remove {field}.",
        )
    return scalars.read_note(field, node)


def _read_zone(field: str, node: yaml.Node) -> str:
    text = scalars.read_text(field, node)
    try:
        find_zone(text)
    except ValueError as error:
        raise scalars.Misread(f"{error}.") from None
    return text


def _read_duration(field: str, node: yaml.Node) -> int:
    text = scalars.read_text(field, node)
    try:
        return int(parse_duration(text).total_seconds())
    except ValueError as error:
        raise scalars.Misread(f"{error}.") from None


def _read_byte_rate(field: str, node: yaml.Node) -> float:
    text = node.value if isinstance(node, yaml.ScalarNode) else ""
    if text == "0":
        return 0.0
    try:
        return parse_limit(QUOTA_KEYS[BYTE_KEY], text)
    except ValueError as error:
        raise scalars.Misread(f"{field} {error}.", f"For example {field}: 16 KiB.") from None


def _read_by_use(field: str, node: yaml.Node) -> str:
    if not isinstance(node, yaml.ScalarNode) or node.value != "usage":
        raise scalars.Misread(
            f"{field} must be usage.",
            "A fixed share is the weight of a member: {user: spark, weight: 2}.",
        )
    return "usage"


def _read_inventory(field: str, node: yaml.Node) -> str:
    text = scalars.read_text(field, node)
    if not (INVENTORY.fullmatch(text) and text.isprintable()):
        raise scalars.Misread(
            f"{scalars.show(text)} is not an inventory.",
            "Write the path of a file or folder below this folder, or the address of one in a"
            " bucket, for example s3://BUCKET/clients.parquet.",
        )
    return text.rstrip("/")


def _read_preset(_field: str, node: yaml.Node) -> Preset:
    text = node.value if isinstance(node, yaml.ScalarNode) else ""
    if text not in list(Preset):
        presets = ", ".join(Preset)
        raise scalars.Misread(f"{scalars.show(text)} is not a preset.", f"Write one of {presets}.")
    return Preset(text)


def _read_label(_field: str, node: yaml.Node) -> str:
    text = node.value if isinstance(node, yaml.ScalarNode) else ""
    if not LABEL_NAME.fullmatch(text):
        raise scalars.Misread(
            f"{scalars.show(text)} is not the name of a label.",
            "Use only letters, digits and _, and do not start with a digit.",
        )
    return str(text)


def _read_metric(field: str, node: yaml.Node) -> Metric:
    text = scalars.read_text(field, node)
    try:
        return Metric.parse(text)
    except ValueError as error:
        raise scalars.Misread(
            f"{field} {error}.",
            'Write the name of a metric, with labels if need be: rate{resource="Produce"}.',
        ) from None


def _read_step(field: str, node: yaml.Node) -> int:
    seconds = _read_duration(field, node)
    if not 0 < seconds <= MOST_STEP:
        raise scalars.Misread(
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
    text = scalars.read_text(field, node)
    try:
        Repository.parse(text)
    except ValueError as error:
        raise scalars.Misread(str(error), _ADDRESSES) from None
    return text


_BYTES = f"({'|'.join(BYTE_UNITS)})(/s)?"
_CRON = r"\S+(\s+\S+){4}"

NOTE = Value(
    scalars.read_note, {"type": "string", "pattern": r"\S", "maxLength": scalars.LONGEST_NOTE}
)
PAUSED = Value(_read_paused, NOTE.schema)
ZONE = Value(_read_zone, NOTE.schema)
FLAG = Value(scalars.read_flag, {"type": "boolean"})
WHOLE = Value(scalars.read_whole, {"type": "integer", "minimum": 0})
BROKER_ID = Value(scalars.read_whole, {"type": "integer", "minimum": 0, "maximum": 999_999_999})
BY_USE = Value(_read_by_use, {"const": "usage"})
WEIGHT = Value(scalars.read_positive, {"type": "integer", "minimum": 1, "maximum": 999_999_999})
PERCENT = Value(scalars.read_percent, {"type": "number", "minimum": 0, "maximum": 100})
FACTOR = Value(scalars.read_factor, {"type": "number", "minimum": 1})
MULTIPLIER = Value(scalars.read_multiplier, {"type": "number", "exclusiveMinimum": 0})
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
    scalars.read_time,
    {
        "type": "string",
        "pattern": r"^\s*[0-9]{4}-.*"
        r"([0-9][Zz]|[+-][0-9]{2}:?[0-9]{2}|\s[A-Za-z][A-Za-z0-9_+/-]*)\s*$",
        "patternErrorMessage": "Write a time with its zone: 2026-12-01T18:00:00Z.",
    },
)
PRESET = Value(_read_preset, {"enum": [str(preset) for preset in Preset]})
LABEL = Value(_read_label, {"type": "string", "pattern": f"^{LABEL_NAME.pattern}$"})
METRIC = Value(_read_metric, {"type": "string", "minLength": 1})
STEP = Value(_read_step, DURATION.schema)
CRON = Value(read_cron, {"type": "string", "pattern": f"^{_CRON}$"})
SCHEDULE = Value(read_schedule, {"type": "string", "pattern": rf"^({'|'.join(PRESETS)}|{_CRON})$"})
CLUSTER_ID = Value(_read_cluster_id, {"type": "string", "pattern": r"^\S+$"})
CONNECTION = Value(
    _read_connection_name, {"type": "string", "pattern": f"^{CONNECTION_NAME.pattern}$"}
)
INVENTORY_PATH = Value(_read_inventory, {"type": "string", "pattern": f"^({INVENTORY.pattern})$"})
REPOSITORY = Value(_read_repository, {"type": "string", "pattern": r"^https?://[^@\s/]+/[^\s]+$"})
