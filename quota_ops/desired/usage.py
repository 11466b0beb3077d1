"""The field `usage` of cluster.yaml: where the use of the cluster's clients is measured."""

from collections.abc import Callable
from typing import Any, TypeVar

import yaml

from quota_ops.desired.yaml.fields import FieldNodes, read_fields, read_value
from quota_ops.desired.yaml.scalars import Misread, read_text, show
from quota_ops.desired.yaml.shapes import METRICS, USAGE, USAGE_LABELS, Shape
from quota_ops.desired.yaml.source import Source
from quota_ops.desired.yaml.values import CONNECTION, DURATION
from quota_ops.model.usage.usage import LABEL, Metric, Preset, UsagePolicy

Read = TypeVar("Read")
MOST_STEP = 300
"""The longest interval of scrapes, in seconds: beyond it, Prometheus has gaps by its own rules."""


def read_usage(source: Source, field: FieldNodes) -> UsagePolicy | None:
    """Read where use is measured; None, after adding problems, if it is invalid."""
    before = len(source.problems)
    fields = read_fields(source, field.value, USAGE, field) or {}
    prometheus = read_value(source, fields.get("prometheus"), CONNECTION.read)
    found: dict[str, Any] = {
        "preset": read_value(source, fields.get("preset"), _read_preset),
        "match": _read_match(source, fields["match"]) if "match" in fields else (),
        "broker": read_value(source, fields.get("broker"), _read_label),
        "metrics": _read_each(source, fields.get("metrics"), METRICS, _read_metric),
        "throttle_times": _read_each(source, fields.get("throttle_times"), METRICS, _read_metric),
        "labels": _read_each(source, fields.get("labels"), USAGE_LABELS, _read_label),
        "step": read_value(source, fields.get("step"), _read_step),
    }
    if prometheus is None or len(source.problems) > before:
        return None
    return UsagePolicy(prometheus, **{name: value for name, value in found.items() if value})


def _read_each(
    source: Source, field: FieldNodes | None, shape: Shape, read: Callable[[str, yaml.Node], Read]
) -> tuple[tuple[str, Read], ...]:
    if field is None:
        return ()
    fields = read_fields(source, field.value, shape, field) or {}
    values = ((name, read_value(source, each, read)) for name, each in fields.items())
    return tuple((name, value) for name, value in values if value is not None)


def _read_match(source: Source, field: FieldNodes) -> tuple[tuple[str, str], ...]:
    if not isinstance(field.value, yaml.MappingNode):
        remedy = "For example match: {cluster: orders}."
        source.refuse(field.place, "match must be a mapping of labels.", remedy)
        return ()
    labels: dict[str, str] = {}
    for name, value in field.value.value:
        label = read_value(source, FieldNodes(name, name), lambda _, node: _read_label("", node))
        text = read_value(source, FieldNodes(name, value), read_text)
        if label in labels:
            source.refuse(name, f"{label} is set twice.", "Remove one.")
        elif label is not None and text is not None:
            labels[label] = text
    return tuple(labels.items())


def _read_preset(_field: str, node: yaml.Node) -> Preset:
    text = node.value if isinstance(node, yaml.ScalarNode) else ""
    if text not in list(Preset):
        raise Misread(f"{show(text)} is not a preset.", f"Write one of {', '.join(Preset)}.")
    return Preset(text)


def _read_label(_field: str, node: yaml.Node) -> str:
    text = node.value if isinstance(node, yaml.ScalarNode) else ""
    if not LABEL.fullmatch(text):
        raise Misread(
            f"{show(text)} is not the name of a label.",
            "Use only letters, digits and _, and do not start with a digit.",
        )
    return str(text)


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
    seconds = int(DURATION.read(field, node))
    if not 0 < seconds <= MOST_STEP:
        raise Misread(
            f"{field} must be from 1s to {MOST_STEP // 60}m.", "Write the interval of the scrapes."
        )
    return seconds
