"""Entries of the lists in cluster.yaml and quotas files: freeze, retired_brokers, silence."""

from difflib import get_close_matches
from functools import partial
from typing import Any

import yaml

from quota_ops.desired.yaml.fields import (
    FieldNodes,
    read_fields,
    read_items,
    read_value,
    read_values,
)
from quota_ops.desired.yaml.scalars import Misread, read_note, read_text, show
from quota_ops.desired.yaml.shapes import FREEZE, RETIRED_BROKER, SILENCE, Shape
from quota_ops.desired.yaml.source import Source
from quota_ops.findings.codes import CODES, IDLE_SILENCE, SILENCEABLE
from quota_ops.model.finding import Silence
from quota_ops.model.plans.policy import Freeze, RetiredBroker

MOST_FREEZES = 100
"""The most windows of a cluster; each is checked before every write."""


def read_freezes(source: Source, field: FieldNodes) -> tuple[Freeze, ...]:
    """Read the windows of a `freeze` field; adds problems for invalid ones."""
    freezes = []
    items = read_items(source, field)
    if len(items) > MOST_FREEZES:
        remedy = f"Write at most {MOST_FREEZES}; a cron field takes ranges, for example 1-5."
        source.refuse(field.name, f"freeze has {len(items):,} windows.", remedy)
        return ()
    for item in items:
        values = _read_entry(source, item, FREEZE)
        if values is not None:
            freezes.append(Freeze(**values))
    return tuple(freezes)


def _read_entry(source: Source, item: yaml.Node, shape: Shape) -> dict[str, Any] | None:
    """Read the values of an entry by field; None, after adding a problem, if one is invalid."""
    values = read_values(source, read_fields(source, item, shape) or {}, shape)
    return None if None in values.values() else values


def read_retired_brokers(source: Source, field: FieldNodes) -> tuple[RetiredBroker, ...]:
    """Read the brokers of a `retired_brokers` field; adds problems for invalid entries."""
    found: dict[int, RetiredBroker] = {}
    for item in read_items(source, field):
        values = _read_entry(source, item, RETIRED_BROKER)
        if values is None:
            continue
        broker = RetiredBroker(**values)
        if broker.id in found:
            source.refuse(item, f"Broker {broker.id} is listed twice.", "Remove one.")
        found[broker.id] = broker
    return tuple(found[broker_id] for broker_id in sorted(found))


_LISTED = "List the codes with quota-ops findings."


def read_silences(source: Source, field: FieldNodes) -> tuple[Silence, ...]:
    """Read the entries of a `silence` field, for the whole cluster."""
    silences = []
    for item in read_items(source, field):
        fields = read_fields(source, item, SILENCE) or {}
        read_code = partial(_read_code, guess=source.lists_more)
        code = read_value(source, fields.get("finding"), read_code)
        reason = read_value(source, fields.get("reason"), read_note)
        if code is not None and reason is not None:
            silences.append(
                Silence(
                    code, reason, None, source.locate(source.find_span(fields["finding"].value))
                )
            )
    return tuple(silences)


def _read_code(field: str, node: yaml.Node, *, guess: bool) -> str:
    text = read_text(field, node)
    if text == IDLE_SILENCE:
        raise Misread(
            f"{text} cannot be silenced: it reports a silence that matches no finding.",
            "Remove that silence.",
        )
    if text not in CODES:
        near = get_close_matches(text, SILENCEABLE, n=1) if guess else []
        remedy = f"Did you mean {near[0]}? {_LISTED}" if near else _LISTED
        raise Misread(f"{show(text)} is not a finding code.", remedy)
    return text
