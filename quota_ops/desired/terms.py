"""The terms of an entry besides its limits: a profile, an end, overrides.

They are read here and kept with the file; `desired.expand` turns them into limits.
"""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import yaml

from quota_ops.desired.limits import Derivation, Limit, read_limits
from quota_ops.desired.yaml.fields import (
    FieldNodes,
    read_fields,
    read_items,
    read_value,
    read_values,
)
from quota_ops.desired.yaml.scalars import read_note, read_time, text_that
from quota_ops.desired.yaml.shapes import OVERRIDE
from quota_ops.desired.yaml.source import Source, Span
from quota_ops.model.quotas.entity import IP
from quota_ops.model.quotas.quota import QUOTA_KEYS


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
    topics: tuple[str, ...] = ()
    """Names, or prefixes with `*`: only brokers that lead partitions of these topics count."""

    @property
    def changes(self) -> frozenset[str]:
        """The times (ISO 8601, UTC) at which some limit starts or ends."""
        overrides = (time for each in self.overrides for time in (each.start, each.until))
        return frozenset(filter(None, (self.until, *overrides)))


def read_terms(
    source: Source, fields: Mapping[str, FieldNodes], types: Sequence[str]
) -> Terms | None:
    """Read the terms of an entry for an entity with these types; None if it has none."""
    if not fields.keys() & {"profile", "until", "overrides", "cluster_limits", "topics"}:
        return None
    until = fields.get("until")
    overrides = _read_overrides(source, fields.get("overrides"), types)
    rates = _read_cluster_limits(source, fields, types)
    every = (*rates, *(limit for override in overrides for limit in override.limits))
    if "topics" in fields and not any(limit.is_whole for limit in every):
        message = "topics decide which brokers share a limit of the whole cluster."
        source.refuse(fields["topics"].name, message, "Write the limits under cluster_limits.")
    return Terms(
        read_reference(source, fields.get("profile")),
        read_value(source, until, read_time),
        source.find_span((until or next(iter(fields.values()))).name),
        overrides,
        rates,
        _read_topics(source, fields, types),
    )


def _read_cluster_limits(
    source: Source, fields: Mapping[str, FieldNodes], types: Sequence[str]
) -> tuple[Limit, ...]:
    """Read the limits of the whole cluster; adds a problem for what brokers do not share."""
    if "cluster_limits" not in fields:
        return ()
    limits = read_limits(source, fields["cluster_limits"], types)
    for limit in limits:
        if QUOTA_KEYS[limit.key].by_controller:
            _refuse(source, limit, "is enforced by the controller alone")
        elif limit.value == QUOTA_KEYS[limit.key].unlimited:
            _refuse(source, limit, "is unlimited")
    whole = (limit._replace(is_whole=True) for limit in limits)
    return tuple([limit._replace(derivation=Derivation(limit.words)) for limit in whole])


def _refuse(source: Source, limit: Limit, why: str) -> None:
    message = f"{limit.key} {why}, so brokers have no share of it."
    source.refuse_at(limit.span, message, "Write it under limits.")


def _read_topics(
    source: Source, fields: Mapping[str, FieldNodes], types: Sequence[str]
) -> tuple[str, ...]:
    if "topics" not in fields:
        return ()
    field = fields["topics"]
    if IP in types:
        message = "topics do not limit the brokers that addresses connect to."
        source.refuse(field.name, message, "Remove topics.")
    topics: dict[str, None] = {}
    for item in read_items(source, field):
        topic = read_value(source, FieldNodes(field.name, item), _read_topic)
        if topic in topics:
            source.refuse(item, f"{topic} is listed twice.", "Remove one.")
        elif topic is not None:
            topics[topic] = None
    if isinstance(field.value, yaml.SequenceNode) and not field.value.value:
        message = "topics is an empty list."
        source.refuse(field.value, message, "List at least one topic, or remove topics.")
    return tuple(topics)


_read_topic = text_that(
    re.compile(r"[a-zA-Z0-9._-]{1,249}\*?").fullmatch,
    "is neither a topic nor a prefix of topics.",
    "Write a name of letters, digits, '.', '_' and '-', or a prefix like orders-*.",
)
"""Reads a topic's name, or a prefix with `*`. Source: org.apache.kafka.common.internals.Topic."""


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
    limits += _read_cluster_limits(source, fields, types)
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
                source.refuse_at(
                    override.span,
                    f"{limit.key} has another override at this time, on line "
                    f"{before.span.line + 1}: it ends at {before.until}.",
                    f"Start this one at {before.until} or later, or shorten the other one.",
                )
                return ordered
            last[limit.key] = override
    return ordered
