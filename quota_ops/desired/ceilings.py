"""The field `ceilings` of cluster.yaml: what each owner may declare, and what is above it."""

from collections.abc import Mapping
from typing import NamedTuple

import yaml

from quota_ops.desired.quotas_file import read_limits
from quota_ops.desired.yaml.fields import FieldNodes, read_value
from quota_ops.desired.yaml.scalars import read_note, show
from quota_ops.desired.yaml.shapes import CEILING
from quota_ops.desired.yaml.source import Source, Span
from quota_ops.model.plans.ceilings import Ceiling, Limits


class DeclaredCeilings(NamedTuple):
    """The ceilings by owner, and where cluster.yaml names each owner."""

    ceilings: tuple[Ceiling, ...] = ()
    source: Source | None = None
    places: Mapping[str, Span] = {}


def read_ceilings(source: Source, field: FieldNodes) -> DeclaredCeilings:
    """Read the ceilings of a `ceilings` field by owner; adds problems for invalid ones."""
    ceilings: dict[str, Ceiling] = {}
    places: dict[str, Span] = {}
    if not isinstance(field.value, yaml.MappingNode):
        remedy = "For example ceilings: {payments: {producer_byte_rate: 200 MiB}}."
        source.refuse(field.place, "ceilings must map each owner to limits.", remedy)
        return DeclaredCeilings()
    for key, value in field.value.value:
        owner = read_value(source, FieldNodes(field.name, key), read_note)
        if owner is None:
            continue
        if owner in ceilings:
            source.refuse(key, f"The owner {show(owner)} is listed twice.", "Merge the two.")
        limits = read_limits(source, FieldNodes(key, value), (), CEILING)
        nodes = value.value if isinstance(value, yaml.MappingNode) else ()
        total = next(
            (FieldNodes(name, node) for name, node in nodes if name.value == "total"), None
        )
        each = tuple(sorted((limit.key, limit.value) for limit in limits))
        ceilings[owner] = Ceiling(owner, each, _read_total(source, total))
        places[owner] = source.find_span(key)
    return DeclaredCeilings(tuple(ceilings[owner] for owner in sorted(ceilings)), source, places)


def _read_total(source: Source, field: FieldNodes | None) -> Limits:
    limits = () if field is None else read_limits(source, field, ())
    return tuple(sorted((limit.key, limit.value) for limit in limits))
