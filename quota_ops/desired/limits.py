"""Limits as YAML declares them, each of one key."""

import re
from collections.abc import Sequence
from typing import NamedTuple

import yaml

from quota_ops.desired.yaml.fields import FieldNodes, read_fields, read_value
from quota_ops.desired.yaml.scalars import Misread, is_empty_scalar, show
from quota_ops.desired.yaml.shapes import LIMITS, QUOTA, Shape
from quota_ops.desired.yaml.source import Source, Span
from quota_ops.findings.entity_rules import CURLY
from quota_ops.model.quotas.quota import QUOTA_KEYS, format_limit, parse_limit

_OF_CLUSTER = re.compile(r"\s*(per|for|in|of)?\s*(the)?\s*(whole)?\s*cluster$", re.IGNORECASE)
_LONGEST_NUMBER = 40
"""More digits than a double has; the message for a longer text is short."""


class Derivation(NamedTuple):
    """How a limit follows from its line, and when it ends or changes.

    `until` (ISO 8601, UTC) is when the limit ends or changes, `returns_to` the value from then on
    if it is temporary: that of the standing limit, or 0 if there is none. Kafka has no quota of 0.
    `returns_to_whole` is whether that value is one of the whole cluster.
    """

    text: str
    until: str | None = None
    returns_to: float | None = None
    reason: str | None = None
    returns_to_whole: bool = False


class Limit(NamedTuple):
    """A limit of one key, in the key's unit, with its text and the place of its key.

    The text is empty if a profile or a group declares it, not the quota's own limits. `is_whole` is
    whether the limit is for the whole cluster, so that each broker gets a share.
    """

    key: str
    value: float
    text: str
    span: Span
    derivation: Derivation | None = None
    is_whole: bool = False

    @property
    def words(self) -> str:
        """The value as people read it: `300 MiB/s per cluster`."""
        return format_limit(self.key, self.value) + (" per cluster" if self.is_whole else "")


def read_limits(
    source: Source, field: FieldNodes, types: Sequence[str], shape: Shape = LIMITS
) -> tuple[Limit, ...]:
    """Read the limits of an entity with these types; adds a problem for each invalid one.

    A `shape` may have other fields besides the keys, which are not read here.
    """
    fields = read_fields(source, field.value, shape, field)
    if fields is None:
        return ()
    if not field.value.value:
        remedy = f"Add at least one limit, for example {QUOTA.fields['limits'].example}."
        source.refuse(field.value, f"{field.name.value} is empty.", remedy)
    limits = []
    for key, limit in fields.items():
        if key not in QUOTA_KEYS:
            continue
        if not QUOTA_KEYS[key].types.issuperset(types):
            _refuse_key(source, limit, types)
        value = read_value(source, limit, read_limit)
        if value is not None:
            limits.append(Limit(key, value, limit.value.value, source.find_span(limit.name)))
    return tuple(limits)


def _refuse_key(source: Source, limit: FieldNodes, types: Sequence[str]) -> None:
    fitting = [key.name for key in QUOTA_KEYS.values() if key.types.issuperset(types)]
    if fitting:  # otherwise the types cannot be combined, which is a problem of the entity
        message = f"{limit.name.value} does not apply to {' and '.join(types)}."
        source.refuse(limit.name, message, f"Use one of {', '.join(fitting)}.")


def read_limit(key: str, node: yaml.Node) -> float:
    """Read a limit in the key's unit. Raises Misread for anything else."""
    if not isinstance(node, yaml.ScalarNode):
        raise Misread(f"{key} must be one number.")
    if is_empty_scalar(node):
        raise Misread(f"{key} is empty.", "To set no limit, remove the key.")
    if len(node.value) > _LONGEST_NUMBER:
        raise Misread(f"{key} must be one number, not {show(node.value)}.")
    if _OF_CLUSTER.search(node.value):
        number = _OF_CLUSTER.sub("", node.value).strip()
        raise Misread(
            f"{key} applies on each broker, not to the cluster.",
            f"Write cluster_limits: {{{key}: {number}}}.",
        )
    try:
        return parse_limit(QUOTA_KEYS[key], node.value)
    except ValueError as error:
        curly = any(quote in node.value for quote in CURLY)
        raise Misread(f"{key} {error}.", "Remove the curly quotes." if curly else None) from None
