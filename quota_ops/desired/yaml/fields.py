"""The fields of a mapping: each known, each set once, and none missing."""

import re
from collections.abc import Callable, Iterator, Mapping
from difflib import get_close_matches
from typing import Any, NamedTuple, TypeVar

import yaml

from quota_ops.desired.yaml.shapes import LIMITS, Shape
from quota_ops.desired.yaml.source import Source
from quota_ops.desired.yaml.values import Misread, is_empty_scalar, read_note, show

T = TypeVar("T")


class FieldNodes(NamedTuple):
    """The nodes of a field's name and value."""

    name: yaml.ScalarNode
    value: yaml.Node

    @property
    def place(self) -> yaml.Node:
        """The node that problems point at: the value, or the name if the value is empty."""
        nothing = self.value.start_mark.index == self.value.end_mark.index
        return self.name if nothing else self.value


def read_fields(
    source: Source, node: yaml.Node, shape: Shape, of: FieldNodes | None = None
) -> dict[str, FieldNodes] | None:
    """Read the known fields of a mapping by name; adds problems for unknown and missing fields.

    None, after adding a problem, if the node, which is the value `of` a field, is not a mapping.
    """
    if not isinstance(node, yaml.MappingNode):
        remedy = _explain_colon(getattr(node, "value", None), shape) or shape.takes
        source.refuse(node if of is None else of.place, f"{shape.title} must be a mapping.", remedy)
        return None
    fields: dict[str, FieldNodes] = {}
    meant: set[str] = set()
    is_second_entry = False
    for name, value in node.value:
        text = name.value
        if not isinstance(text, str):
            source.refuse(name, f"This is not {shape.field_noun}.", shape.takes)
        elif text not in shape.fields:
            meant.add(_refuse_unknown(source, name, shape))
        elif text in fields:
            is_second_entry = is_second_entry or _refuse_repeated(source, name, fields[text].name)
        else:
            fields[text] = FieldNodes(name, value)
    for name in meant:
        if name in fields and is_empty_scalar(fields[name].value):
            del fields[name]  # its value is elsewhere, which is a problem already
    for required in shape.required:
        is_replaced = not fields.keys().isdisjoint(shape.instead.get(required, ()))
        if required not in fields and required not in meant and not is_replaced:
            example = shape.fields[required].example
            others = "".join(f", or {other}" for other in shape.instead.get(required, ()))
            remedy = f"Add {required}: {example}{others}."
            source.refuse(node, f"{required} is missing.", remedy)
    return fields


def _refuse_repeated(source: Source, name: yaml.ScalarNode, first: yaml.ScalarNode) -> bool:
    """Add a problem for a field that is there again; return whether it may begin another entry.

    The other fields of that entry are there again, too.
    """
    mark = first.start_mark
    begins_entry = source.lines[mark.line][: mark.column].endswith("- ")
    remedy = 'To begin another entry, write "- " before it; otherwise remove one.'
    message = f"{name.value} is set twice, first on line {mark.line + 1}."
    source.refuse(name, message, remedy if begins_entry else "Remove one.")
    return begins_entry


def _refuse_unknown(source: Source, name: yaml.ScalarNode, shape: Shape) -> str:
    """Add a problem for an unknown field; return the field that was probably meant, or ""."""
    text = name.value
    if remedy := _explain_colon(text, shape):
        source.refuse(name, f"{show(text)} is not {shape.field_noun}.", remedy)
        return re.split("[: ]", text)[0]
    known = text.replace("fetch", "consumer")  # as Kafka's requests and metrics call it
    close = get_close_matches(known, shape.fields, n=1) if source.lists_more else []
    remedy, meant = shape.takes, close[0] if close else ""
    if close:
        of_another = "" if text.isascii() else " Yours has a letter of another alphabet."
        remedy = f"Did you mean {meant}?{of_another}"
    elif text in LIMITS.fields and "limits" in shape.fields:
        remedy, meant = "Move it under limits, indented further.", "limits"
    elif text[:1].isdecimal():
        remedy = "In { } a comma ends the value: write 1000 or 1.5 MiB, not 1,000 or 1,5 MiB."
    source.refuse(name, f"{show(text)} is not {shape.field_noun}.", remedy)
    return meant


def _explain_colon(text: object, shape: Shape) -> str | None:
    """Return the remedy for `user:zoe` and `user zoe`; None unless a field lacks space or colon."""
    found = _TIGHT.fullmatch(text) if isinstance(text, str) else None
    if found is None or found[1] not in shape.fields:
        return None
    what = "a space after the colon" if found[2] else "a colon after the name"
    return f"Add {what}: {show(f'{found[1]}: {found[3]}')}"


_TIGHT = re.compile(r"([a-z_-]+)(?:(:)| +)(.*)")


def read_items(source: Source, field: FieldNodes | None, least: str = "") -> list[yaml.Node]:
    """Return the items of a list; none, after adding a problem, if the field is not a list.

    None without a problem for a missing field. If `least` is what an item is, the list must not be
    empty.
    """
    if field is None:
        return []
    name = field.name.value
    if not isinstance(field.value, yaml.SequenceNode):
        remedy = 'Start each item with "- ", or write [] for an empty list.'
        source.refuse(field.place, f"{name} must be a list.", remedy)
        return []
    if least and not field.value.value:
        source.refuse(field.value, f"{name} is an empty list.", f"List at least one {least}.")
    return list(field.value.value)


def read_value(
    source: Source, field: FieldNodes | None, read: Callable[[str, yaml.Node], T]
) -> T | None:
    """Read a field's value with `read`; None, after adding a problem, if it raises Misread.

    None without a problem for a missing field.
    """
    if field is None:
        return None
    try:
        return read(field.name.value, field.value)
    except Misread as wrong:
        rest = source.lines[field.name.end_mark.line][field.name.end_mark.column :]
        is_comment = field.place is field.name and _COMMENT.match(rest)
        remedy = "Put it in quotes: # begins a comment." if is_comment else wrong.remedy
        source.refuse(field.place, wrong.message, remedy)
        return None


_COMMENT = re.compile(r":\s+#[^\s#]")


def read_values(source: Source, fields: Mapping[str, FieldNodes], shape: Shape) -> dict[str, Any]:
    """Read the value of each field that the shape can read; None for invalid ones."""
    read = {name: shape.fields[name].read for name in shape.fields if name in fields}
    return {name: read_value(source, fields[name], of) for name, of in read.items() if of}


def read_name(
    source: Source, field: FieldNodes | None, read: Callable[[str, yaml.Node], T]
) -> T | None:
    """Read a name as `read_value` does; adds a problem for an unescaped invisible character."""
    value = None if field is None else field.value
    # a default is not searched: its mapping ends only after the comments that follow
    if source.has_unseen and isinstance(value, yaml.ScalarNode) and source.refuse_unseen(value):
        return None
    return read_value(source, field, read)


def read_part(source: Source, field: FieldNodes, shape: Shape) -> dict[str, Any]:
    """Read the values of a field that is a mapping by name, without those of missing fields."""
    return read_values(source, read_fields(source, field.value, shape, field) or {}, shape)


def read_entry(source: Source, item: yaml.Node, shape: Shape) -> dict[str, Any] | None:
    """Read the values of an item of a list; None, after adding a problem, if one is invalid."""
    values = read_values(source, read_fields(source, item, shape) or {}, shape)
    return None if None in map(values.get, shape.required) else values


def read_named(
    source: Source,
    field: FieldNodes,
    noun: str,
    example: str,
    known: Mapping[str, str] | None = None,
) -> Iterator[tuple[str, FieldNodes]]:
    """Yield the names of a mapping that people choose, each with its nodes.

    Adds a problem, with the example, if it is not a mapping, and for a name that is there again, or
    `known` with its place, which is left out.
    """
    if not isinstance(field.value, yaml.MappingNode):
        message = f"{field.name.value} must map each {noun} to a mapping."
        source.refuse(field.place, message, f"For example {field.name.value}: {example}.")
        return
    names = dict(known or {})
    for key, value in field.value.value:
        name = read_value(source, FieldNodes(field.name, key), read_note)
        if name is None:
            continue
        if name in names:
            message = f"The {noun} {show(name)} is defined already, at {names[name]}."
            source.refuse(key, message, "Merge the two, or rename one.")
            continue
        names[name] = source.place(key)
        yield name, FieldNodes(key, value)


def find_field(node: yaml.Node | None, name: str) -> FieldNodes | None:
    """Find a field by name; None if the node is no mapping, or lacks it."""
    nodes = node.value if isinstance(node, yaml.MappingNode) else ()
    return next((FieldNodes(key, value) for key, value in nodes if key.value == name), None)
