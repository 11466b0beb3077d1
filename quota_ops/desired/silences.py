"""Entries of `silence`: which finding is as it should be, and why."""

from difflib import get_close_matches
from functools import partial
from typing import Any

import yaml

from quota_ops.desired.yaml.fields import FieldNodes, read_fields, read_items, read_value
from quota_ops.desired.yaml.scalars import Misread, read_note, read_text, show
from quota_ops.desired.yaml.shapes import SILENCE
from quota_ops.desired.yaml.source import Source
from quota_ops.findings.codes import CODES, IDLE_SILENCE, SILENCEABLE
from quota_ops.model.entity import Entity
from quota_ops.model.finding import Place, Silence

_LISTED = "quota-ops findings lists them all."


def read_silences(source: Source, field: FieldNodes, entity: Entity | None) -> tuple[Silence, ...]:
    """The entries of a `silence` field, for an entity or for the whole cluster (None)."""
    silences = []
    whom = None if entity is None else entity.text
    for item in read_items(source, field):
        fields = read_fields(source, item, SILENCE) or {}
        read_code = partial(_read_code, guess=source.lists_more)
        code = read_value(source, fields.get("finding"), read_code)
        reason = read_value(source, fields.get("reason"), read_note)
        if code is not None and reason is not None:
            silences.append(
                Silence(code, reason, whom, place_of(source, fields["finding"].value.start_mark))
            )
    return tuple(silences)


def place_of(source: Source, mark: Any) -> Place:
    """A node's start, in a file named below the cluster's folder."""
    return Place(source.name, mark.line + 1, mark.column + 1)


def _read_code(field: str, node: yaml.Node, *, guess: bool) -> str:
    text = read_text(field, node)
    if text == IDLE_SILENCE:
        raise Misread(
            f"{text} cannot be silenced: it is a silence that covers nothing.", "Remove that one."
        )
    if text not in CODES:
        near = get_close_matches(text, SILENCEABLE, n=1) if guess else []
        remedy = f"Did you mean {near[0]}? {_LISTED}" if near else _LISTED
        raise Misread(f"{show(text)} is not a finding code.", remedy)
    return text
