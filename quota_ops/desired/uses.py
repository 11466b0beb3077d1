"""The field `use` of cluster.yaml: files that several clusters share."""

from decimal import Decimal
from typing import NamedTuple

import yaml

from quota_ops.desired.yaml.fields import (
    FieldNodes,
    read_fields,
    read_items,
    read_value,
    read_values,
)
from quota_ops.desired.yaml.scalars import Misread, read_text, show
from quota_ops.desired.yaml.shapes import USE
from quota_ops.desired.yaml.source import Source, Span


class Use(NamedTuple):
    """A shared file, and the factor by which this cluster multiplies its limits."""

    file: str
    span: Span
    factor: Decimal | None


def read_uses(source: Source, field: FieldNodes) -> tuple[Use, ...]:
    """Read the files of a `use` field; adds problems for invalid and repeated ones."""
    uses: dict[str, Use] = {}
    for item in read_items(source, field):
        factor = None
        named = FieldNodes(field.name, item)
        if isinstance(item, yaml.MappingNode):
            fields = read_fields(source, item, USE) or {}
            factor = read_values(source, fields, USE)["factor"]
            if "file" not in fields:
                continue
            named = fields["file"]
        file = read_value(source, named, _read_file)
        if file is None:
            continue
        if file in uses:
            source.refuse(named.value, f"{show(file)} is listed twice.", "Remove one.")
        uses[file] = Use(file, source.find_span(named.value), factor)
    return tuple(uses.values())


def _read_file(field: str, node: yaml.Node) -> str:
    text = read_text(field, node)
    if "/" in text or not text.endswith((".yaml", ".yml")) or text.startswith("."):
        raise Misread(
            f"{show(text)} is not the name of a YAML file in the folder _shared.",
            "For example use: [gold.yaml].",
        )
    return text
