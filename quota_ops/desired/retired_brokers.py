"""Entries of `retired_brokers`: which broker is gone for good, and why."""

from typing import Any

from quota_ops.desired.yaml.fields import FieldNodes, read_fields, read_items, read_value
from quota_ops.desired.yaml.scalars import read_note, read_whole
from quota_ops.desired.yaml.shapes import RETIRED_BROKER
from quota_ops.desired.yaml.source import Source
from quota_ops.model.policy import RetiredBroker


def read_retired_brokers(source: Source, field: FieldNodes) -> tuple[RetiredBroker, ...]:
    """The brokers of a `retired_brokers` field; problems for entries that are not clear."""
    found: dict[int, RetiredBroker] = {}
    for item in read_items(source, field):
        fields = read_fields(source, item, RETIRED_BROKER) or {}
        values: dict[str, Any] = {
            name: read_value(source, fields.get(name), read) for name, read in _READERS.items()
        }
        if None in values.values():
            continue
        broker = RetiredBroker(**values)
        if broker.id in found:
            source.refuse(item, f"Broker {broker.id} is listed twice.", "Keep one.")
        found[broker.id] = broker
    return tuple(found[one] for one in sorted(found))


_READERS = {"id": read_whole, "reason": read_note}
