"""Entries of `freeze`: windows in which nothing is written."""

from typing import Any

import yaml

from quota_ops.desired.cron import read_cron
from quota_ops.desired.yaml.fields import FieldNodes, read_fields, read_items, read_value
from quota_ops.desired.yaml.scalars import Misread, read_note, read_text
from quota_ops.desired.yaml.shapes import FREEZE
from quota_ops.desired.yaml.source import Source
from quota_ops.model.moment import find_zone, parse_duration
from quota_ops.model.policy import Freeze

MOST = 100
"""Windows of a cluster; each is looked at before every write."""


def read_freezes(source: Source, field: FieldNodes) -> tuple[Freeze, ...]:
    """The windows of a `freeze` field; problems for those that are not clear."""
    freezes = []
    items = read_items(source, field)
    if len(items) > MOST:
        remedy = f"Write at most {MOST}; a cron field takes a list, such as 1-5."
        source.refuse(field.name, f"freeze has {len(items):,} windows.", remedy)
        return ()
    for item in items:
        fields = read_fields(source, item, FREEZE) or {}
        values: dict[str, Any] = {
            name: read_value(source, fields.get(name), read) for name, read in _READERS.items()
        }
        if None not in values.values():
            freezes.append(Freeze(**values))
    return tuple(freezes)


def _read_zone(field: str, node: yaml.Node) -> str:
    text = read_text(field, node)
    try:
        find_zone(text)
    except ValueError as error:
        raise Misread(f"{error}.") from None
    return text


def read_duration(field: str, node: yaml.Node) -> int:
    """Return the seconds of a length of time such as 62h; raises Misread when it is none."""
    text = read_text(field, node)
    try:
        return int(parse_duration(text).total_seconds())
    except ValueError as error:
        raise Misread(f"{error}.") from None


_READERS = {
    "cron": read_cron,
    "zone": _read_zone,
    "duration": read_duration,
    "reason": read_note,
}
