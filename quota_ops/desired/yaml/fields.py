"""A mapping's fields: each once, each known, none missing."""

from collections.abc import Callable
from difflib import get_close_matches
from typing import NamedTuple, TypeVar

import yaml

from quota_ops.desired.yaml.scalars import Misread, show
from quota_ops.desired.yaml.shapes import LIMITS, Shape
from quota_ops.desired.yaml.source import Source

T = TypeVar("T")


class FieldNodes(NamedTuple):
    """Where a field's name and its value stand."""

    name: yaml.ScalarNode
    value: yaml.Node

    @property
    def place(self) -> yaml.Node:
        """The node to point at: the value, or the name where nothing follows it."""
        nothing = self.value.start_mark.index == self.value.end_mark.index
        return self.name if nothing else self.value


def read_fields(
    source: Source, node: yaml.Node, shape: Shape, of: FieldNodes | None = None
) -> dict[str, FieldNodes] | None:
    """The known fields of a mapping by name; problems for the others and for missing ones.

    None, and a problem, when the node, which is the value `of` a field, is no mapping.
    """
    if not isinstance(node, yaml.MappingNode):
        remedy = _missing_blank(getattr(node, "value", None), shape) or shape.takes
        source.refuse(node if of is None else of.place, f"{shape.title} must be a mapping.", remedy)
        return None
    fields: dict[str, FieldNodes] = {}
    meant = set()
    for name, value in node.value:
        text = name.value
        if not isinstance(text, str):
            source.refuse(name, f"This is not {shape.noun}.", shape.takes)
        elif text not in shape.fields:
            meant.add(_refuse_unknown(source, name, shape))
        elif text in fields:
            first = fields[text].name.start_mark.line + 1
            source.refuse(name, f"{text} is set twice, first on line {first}.", "Remove one.")
        else:
            fields[text] = FieldNodes(name, value)
    for required in shape.required:
        if required not in fields and required not in meant:
            example = shape.fields[required].example
            source.refuse(node, f"{required} is missing.", f"Add {required}: {example}.")
    return fields


def _refuse_unknown(source: Source, name: yaml.ScalarNode, shape: Shape) -> str | None:
    """Add the problem of an unknown field; the field that was probably meant, if any."""
    text = name.value
    if text in shape.reserved:
        source.refuse(name, f"{text} is reserved for a later version.", "Remove it for now.")
        return None
    if remedy := _missing_blank(text, shape):
        source.refuse(name, f"{show(text)} is not {shape.noun}.", remedy)
        return str(text).partition(":")[0]
    close = get_close_matches(text, shape.fields, n=1) if source.lists_more else []
    remedy = shape.takes
    if close:
        remedy = f"Did you mean {close[0]}?"
    elif text in LIMITS.fields:
        remedy = "Move it under limits."
    source.refuse(name, f"{show(text)} is not {shape.noun}.", remedy)
    return close[0] if close else None


def _missing_blank(text: object, shape: Shape) -> str | None:
    """What to write in place of `user:zoe`; None where no field has its colon without a space."""
    if not isinstance(text, str):
        return None
    field, colon, value = text.partition(":")
    is_one = bool(colon) and field in shape.fields
    return f"Add a space after the colon: {show(f'{field}: {value}')}" if is_one else None


def read_items(source: Source, field: FieldNodes) -> list[yaml.Node]:
    """The items of a field that is a list; none, and a problem, when it is no list."""
    if isinstance(field.value, yaml.SequenceNode):
        return list(field.value.value)
    name = field.name.value
    remedy = 'Start each item with "- ", or write [] for an empty list.'
    source.refuse(field.place, f"{name} must be a list.", remedy)
    return []


def read_value(
    source: Source, field: FieldNodes | None, read: Callable[[str, yaml.Node], T]
) -> T | None:
    """What `read` makes of a field's name and value; None, and a problem, where it misreads.

    None as well, without a problem, for a field that is not there.
    """
    if field is None:
        return None
    try:
        return read(field.name.value, field.value)
    except Misread as wrong:
        source.refuse(field.place, wrong.message, wrong.remedy)
        return None


def read_name(
    source: Source, field: FieldNodes | None, read: Callable[[str, yaml.Node], T]
) -> T | None:
    """As `read_value`; what nobody sees is a problem here too, unless it is an escape."""
    value = None if field is None else field.value
    # of a default nothing is looked at: its mapping ends only after the comments that follow
    if source.has_unseen and isinstance(value, yaml.ScalarNode) and source.refuse_unseen(value):
        return None
    return read_value(source, field, read)
