"""A quotas file: its owner, and the limits of each entity."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import yaml

from quota_ops.desired.entries import read_silences
from quota_ops.desired.names import read_part
from quota_ops.desired.yaml.fields import FieldNodes, read_fields, read_items, read_name, read_value
from quota_ops.desired.yaml.scalars import Misread, is_empty_scalar, read_note, show
from quota_ops.desired.yaml.shapes import LIMITS, QUOTA, QUOTAS_FILE
from quota_ops.desired.yaml.source import Source, Span
from quota_ops.findings.entity_rules import CURLY
from quota_ops.model.entity import ENTITY_TYPES, IP, Entity
from quota_ops.model.finding import Problem, Silence
from quota_ops.model.quota import QUOTA_KEYS, parse_limit
from quota_ops.model.rows import DesiredRow

_LONGEST_NUMBER = 40
"""More digits than a double has; the message for a longer text is short."""


class Limit(NamedTuple):
    """A limit of one key, in the key's unit, with its text and the place of its key."""

    key: str
    value: float
    text: str
    span: Span


class Quota(NamedTuple):
    """The quota of one entity; `span` is the place that problems point at."""

    source: Source
    span: Span
    entity: Entity
    limits: tuple[Limit, ...]
    owner: str | None
    reason: str | None
    silences: tuple[Silence, ...]

    @property
    def place(self) -> str:
        """The place of the entity: `desired_state/demo/payments.yaml:8`."""
        return f"{self.source.file}:{self.span.line + 1}"

    def refuse(self, message: str, remedy: str, other: Problem | None = None) -> None:
        """Add a problem that points at the entity."""
        line, column, length = self.span
        self.source.refuse_at(line, column, message, remedy, length=length, other=other)


class QuotasFile(NamedTuple):
    """A file and its quotas."""

    source: Source
    quotas: tuple[Quota, ...]


def read_quotas(source: Source, root: yaml.Node) -> Iterator[Quota]:
    """Yield the quotas of a file, without those whose entity has a problem."""
    fields = read_fields(source, root, QUOTAS_FILE)
    if fields is None:
        return
    owner = read_value(source, fields.get("owner"), read_note)
    if "quotas" in fields:
        for item in read_items(source, fields["quotas"]):
            quota = _read_quota(source, item, owner)
            if quota is not None:
                yield quota


def quota_rows(quotas: Iterable[Quota], cluster: str) -> Iterator[DesiredRow]:
    """Yield a row for each limit of the quotas."""
    for quota in quotas:
        entity = quota.entity.text
        for limit in quota.limits:
            yield DesiredRow(
                cluster,
                entity,
                limit.key,
                limit.value,
                quota.owner,
                quota.reason,
                quota.source.name,
                limit.span.line + 1,
            )


def _read_quota(source: Source, node: yaml.Node, owner: str | None) -> Quota | None:
    fields = read_fields(source, node, QUOTA)
    if fields is None:
        return None
    types = [kind for kind in ENTITY_TYPES if kind in fields]
    limits = _read_limits(source, fields["limits"], types) if "limits" in fields else ()
    reason = read_value(source, fields.get("reason"), read_note)
    if not types and len(fields) == len(node.value):
        remedy = "Add user, client-id or ip, for example user: alice or user: {default: true}."
        source.refuse(node, "This quota names no user, client id or address.", remedy)
    entity = _read_entity(source, [fields[kind] for kind in types])
    silence = read_silences(source, fields["silence"], entity) if "silence" in fields else ()
    if entity is None:
        return None
    span = source.find_span(fields[types[0]].name)
    return Quota(source, span, entity, limits, owner, reason, silence)


def _read_entity(source: Source, fields: list[FieldNodes]) -> Entity | None:
    parts = [read_name(source, field, read_part) for field in fields]
    together = {field.name.value: field.name for field in fields}
    if IP in together and len(together) > 1:
        remedy = "Kafka limits connections by address only: write a separate quota."
        source.refuse(together[IP], "ip cannot be combined with user or client-id.", remedy)
        return None
    names = [part for part in parts if part is not None]
    return Entity.of(dict(names)) if names and len(names) == len(parts) else None


def _read_limits(source: Source, field: FieldNodes, types: list[str]) -> tuple[Limit, ...]:
    fields = read_fields(source, field.value, LIMITS, field)
    if fields is None:
        return ()
    if not field.value.value:
        remedy = f"Add at least one limit, for example {QUOTA.fields['limits'].example}."
        source.refuse(field.value, "limits is empty.", remedy)
    limits = []
    for key, limit in fields.items():
        if not QUOTA_KEYS[key].types.issuperset(types):
            _refuse_key(source, limit, types)
        value = read_value(source, limit, _read_limit)
        if value is not None:
            limits.append(Limit(key, value, limit.value.value, source.find_span(limit.name)))
    return tuple(limits)


def _refuse_key(source: Source, limit: FieldNodes, types: list[str]) -> None:
    fitting = [key.name for key in QUOTA_KEYS.values() if key.types.issuperset(types)]
    if fitting:  # otherwise the types cannot be combined, which is a problem of the entity
        message = f"{limit.name.value} does not apply to {' and '.join(types)}."
        source.refuse(limit.name, message, f"Use one of {', '.join(fitting)}.")


def _read_limit(key: str, node: yaml.Node) -> float:
    if not isinstance(node, yaml.ScalarNode):
        raise Misread(f"{key} must be one number.")
    if is_empty_scalar(node):
        raise Misread(f"{key} is empty.", "To set no limit, remove the key.")
    if len(node.value) > _LONGEST_NUMBER:
        raise Misread(f"{key} must be one number, not {show(node.value)}.")
    try:
        return parse_limit(QUOTA_KEYS[key], node.value)
    except ValueError as error:
        curly = any(quote in node.value for quote in CURLY)
        raise Misread(f"{key} {error}.", "Remove the curly quotes." if curly else None) from None
