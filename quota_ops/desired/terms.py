"""What an entry of a quotas file declares besides limits: a profile, an end, overrides.

They are read here and kept with the file; `desired.expand` turns them into limits.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from quota_ops.desired.limits import Limit, read_limits
from quota_ops.desired.yaml.fields import (
    FieldNodes,
    read_fields,
    read_items,
    read_value,
    read_values,
)
from quota_ops.desired.yaml.scalars import read_note, read_time
from quota_ops.desired.yaml.shapes import OVERRIDE
from quota_ops.desired.yaml.source import Source, Span
from quota_ops.model.quota import QUOTA_KEYS

_OF_CONTROLLER = "controller_mutation_rate"


class Reference(NamedTuple):
    """A name that another place defines, and where it is mentioned."""

    name: str
    span: Span


class Override(NamedTuple):
    """Limits that apply from `start` (included; "" for always) until `until` (excluded).

    Times are ISO 8601, UTC, to the second, so that they compare as text.
    """

    span: Span
    start: str
    until: str
    limits: tuple[Limit, ...]
    reason: str | None


class Terms(NamedTuple):
    """The terms of a quota; `until` (ISO 8601, UTC, excluded) is when the whole quota ends."""

    profile: Reference | None
    until: str | None
    until_span: Span
    overrides: tuple[Override, ...]
    cluster_limits: tuple[Limit, ...] = ()
    """Limits of the whole cluster, to be divided by its brokers."""


def read_terms(
    source: Source, fields: Mapping[str, FieldNodes], types: Sequence[str]
) -> Terms | None:
    """Read the terms of an entry for an entity with these types; None if it has none."""
    if not fields.keys() & {"profile", "until", "overrides", "cluster_limits"}:
        return None
    until = fields.get("until")
    return Terms(
        read_reference(source, fields.get("profile")),
        read_value(source, until, read_time),
        source.find_span((until or next(iter(fields.values()))).name),
        _read_overrides(source, fields.get("overrides"), types),
        _read_cluster_limits(source, fields, types),
    )


def _read_cluster_limits(
    source: Source, fields: Mapping[str, FieldNodes], types: Sequence[str]
) -> tuple[Limit, ...]:
    """Read the limits of the whole cluster; adds a problem for what brokers do not share."""
    if "cluster_limits" not in fields:
        return ()
    limits = read_limits(source, fields["cluster_limits"], types)
    for limit in limits:
        if limit.key == _OF_CONTROLLER:
            _refuse(source, limit, "is enforced by the controller alone")
        elif limit.value == QUOTA_KEYS[limit.key].unlimited:
            _refuse(source, limit, "is unlimited")
    return limits


def _refuse(source: Source, limit: Limit, why: str) -> None:
    line, column, length = limit.span
    message = f"{limit.key} {why}, so brokers have no share of it."
    source.refuse_at(line, column, message, "Write it under limits.", length=length)


def _read_overrides(
    source: Source, field: FieldNodes | None, types: Sequence[str]
) -> tuple[Override, ...]:
    if field is None:
        return ()
    read = (
        _read_override(source, FieldNodes(field.name, item), types)
        for item in read_items(source, field)
    )
    return _refuse_overlaps(source, [override for override in read if override is not None])


def read_reference(source: Source, field: FieldNodes | None) -> Reference | None:
    """Read the name of a profile, with its place."""
    name = read_value(source, field, read_note)
    return None if name is None or field is None else Reference(name, source.find_span(field.value))


def _read_override(source: Source, item: FieldNodes, types: Sequence[str]) -> Override | None:
    fields = read_fields(source, item.value, OVERRIDE)
    if fields is None:
        return None
    values = read_values(source, fields, OVERRIDE)
    limits = read_limits(source, fields["limits"], types) if "limits" in fields else ()
    start, until = values["from"] or "", values["until"]
    if until is None or ("from" in fields and not start):
        return None
    if start >= until:
        remedy = "from is the first moment of the override, until the first one after it."
        source.refuse(fields["until"].value, "The override ends before it starts.", remedy)
        return None
    return Override(source.find_span(fields["until"].name), start, until, limits, values["reason"])


def _refuse_overlaps(source: Source, overrides: Sequence[Override]) -> tuple[Override, ...]:
    """Return the overrides by their time; adds a problem if two set one key at the same time."""
    ordered = tuple(sorted(overrides, key=lambda override: (override.start, override.until)))
    last: dict[str, Override] = {}
    for override in ordered:
        for limit in override.limits:
            before = last.get(limit.key)
            if before is not None and override.start < before.until:
                line, column, length = override.span
                source.refuse_at(
                    line,
                    column,
                    f"{limit.key} has another override at this time, on line "
                    f"{before.span.line + 1}: it ends at {before.until}.",
                    f"Start this one at {before.until} or later, or shorten the other one.",
                    length=length,
                )
                return ordered
            last[limit.key] = override
    return ordered
