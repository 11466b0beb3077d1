"""The field `capacity` of cluster.yaml: what a broker can serve, compared with what is promised."""

from collections.abc import Mapping
from typing import NamedTuple

import yaml

from quota_ops.desired.quotas_file import read_limits
from quota_ops.desired.yaml.fields import FieldNodes, read_value
from quota_ops.desired.yaml.scalars import read_factor
from quota_ops.desired.yaml.shapes import CAPACITY
from quota_ops.desired.yaml.source import Source
from quota_ops.model.finding import Location
from quota_ops.model.plans.capacity import Capacity


class DeclaredCapacity(NamedTuple):
    """The capacity of a broker, and where cluster.yaml declares it, by key."""

    capacity: Capacity
    places: Mapping[str, Location]


def read_capacity(source: Source, field: FieldNodes) -> DeclaredCapacity:
    """Read the capacity of a broker; adds problems for invalid values."""
    limits = read_limits(source, field, (), CAPACITY)
    nodes = field.value.value if isinstance(field.value, yaml.MappingNode) else ()
    factor = next((FieldNodes(name, node) for name, node in nodes if name.value == "factor"), None)
    amounts = tuple(sorted((limit.key, limit.value) for limit in limits))
    capacity = Capacity(amounts, read_value(source, factor, read_factor) or 1.0)
    return DeclaredCapacity(capacity, {limit.key: source.locate(limit.span) for limit in limits})
