"""The fields `profiles`, sets of limits with a name, and `use`, files with profiles to share."""

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import NamedTuple

import yaml

from quota_ops.desired.quotas_file import Limit, Reference, read_limits, read_reference
from quota_ops.desired.yaml.fields import (
    FieldNodes,
    find_field,
    read_fields,
    read_items,
    read_named,
    read_value,
    read_values,
)
from quota_ops.desired.yaml.shapes import PROFILE, USE
from quota_ops.desired.yaml.source import Source, Span
from quota_ops.desired.yaml.values import show, text_that


class Profile(NamedTuple):
    """A profile: its own limits, and the profile that it extends, if any."""

    name: str
    source: Source
    span: Span
    limits: tuple[Limit, ...]
    extends: Reference | None
    factor: Decimal | None = None
    """The factor for the limits of its shared file."""


Profiles = Mapping[str, Profile]
"""The profiles of a cluster by name."""


def read_profiles(
    source: Source, field: FieldNodes, known: Profiles | None = None
) -> dict[str, Profile]:
    """Read the profiles of a `profiles` field; adds problems for invalid and `known` ones."""
    places = {
        name: f"{profile.source.file}:{profile.span.line + 1}"
        for name, profile in (known or {}).items()
    }
    example = "{gold: {producer_byte_rate: 50 MiB}}"
    profiles = {}
    for name, nodes in read_named(source, field, "profile", example, places):
        limits = read_limits(source, nodes, (), PROFILE)
        extends = read_reference(source, find_field(nodes.value, "profile"))
        span = source.find_span(nodes.name)
        profiles[name] = Profile(name, source, span, limits, extends)
    return profiles


class SharedUse(NamedTuple):
    """A shared file, and the factor by which this cluster multiplies its limits."""

    file: str
    span: Span
    factor: Decimal | None


def read_uses(source: Source, field: FieldNodes) -> tuple[SharedUse, ...]:
    """Read the files of a `use` field; adds problems for invalid and repeated ones."""
    uses: dict[str, SharedUse] = {}
    for item in read_items(source, field):
        factor = None
        named = FieldNodes(field.name, item)
        if isinstance(item, yaml.MappingNode):
            fields = read_fields(source, item, USE) or {}
            factor = read_values(source, fields, USE).get("factor")
            if "file" not in fields:
                continue
            named = fields["file"]
        file = read_value(source, named, _read_file)
        if file is None:
            continue
        if file in uses:
            source.refuse(named.value, f"{show(file)} is listed twice.", "Remove one.")
        uses[file] = SharedUse(file, source.find_span(named.value), factor)
    return tuple(uses.values())


_read_file = text_that(
    re.compile(r"[^./][^/]*\.ya?ml").fullmatch,
    "is not the name of a YAML file in the folder _shared.",
    "For example use: [gold.yaml].",
)
