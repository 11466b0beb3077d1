"""A quotas file: its owner, and the limits of each entity."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from math import prod
from typing import NamedTuple

import yaml

from quota_ops.desired.entries import read_silences
from quota_ops.desired.groups import Group, read_groups
from quota_ops.desired.limits import Derivation, Limit, read_limits
from quota_ops.desired.names import read_part
from quota_ops.desired.terms import Terms, read_terms
from quota_ops.desired.yaml.fields import FieldNodes, read_fields, read_items, read_name, read_value
from quota_ops.desired.yaml.scalars import read_note
from quota_ops.desired.yaml.shapes import QUOTA, QUOTAS_FILE
from quota_ops.desired.yaml.source import Source, Span
from quota_ops.model.finding import Problem, Silence
from quota_ops.model.quotas.entity import ENTITY_TYPES, IP, Entity
from quota_ops.model.quotas.rows import DesiredRow

Part = tuple[str, str | None]
"""The type and the name of a part of an entity; None is the default's name."""


class Quota(NamedTuple):
    """The quota of one entity; `span` is the place that problems point at."""

    source: Source
    owner: str | None
    span: Span
    entity: Entity
    limits: tuple[Limit, ...]
    reason: str | None
    silences: tuple[Silence, ...]
    derivation: str | None = None
    """Where it comes from, unless its line declares this entity alone: `list of 3`."""
    terms: Terms | None = None
    """What decides its limits besides `limits`; None once they are expanded."""
    group: str | None = None
    """The group of which it is a share."""
    topics: tuple[str, ...] = ()
    """Only brokers that lead partitions of these share its limits of the whole cluster."""

    @property
    def place(self) -> str:
        """The place of the entity: `desired_state/demo/payments.yaml:8`."""
        return f"{self.source.file}:{self.span.line + 1}"

    def refuse(self, message: str, remedy: str, other: Problem | None = None) -> None:
        """Add a problem that points at the entity."""
        self.source.refuse_at(self.span, message, remedy, other=other)


class QuotasFile(NamedTuple):
    """A file, its owner, its quotas and its groups."""

    source: Source
    owner: str | None
    quotas: tuple[Quota, ...]
    groups: tuple[Group, ...] = ()


def read_quotas_file(source: Source, root: yaml.Node) -> QuotasFile:
    """Read a file; adds a problem for each part that is not valid, and leaves it out."""
    fields = read_fields(source, root, QUOTAS_FILE) or {}
    owner = read_value(source, fields.get("owner"), read_note)
    entries = _read_entries(source, fields, owner)
    quotas = tuple(quota for _, of_entry in entries for quota in of_entry)
    groups = read_groups(source, fields["groups"]) if "groups" in fields else ()
    return QuotasFile(source, owner, quotas, tuple(group for _, group in groups))


def read_entries(source: Source, root: yaml.Node) -> Iterator[tuple[yaml.Node, list[Entity]]]:
    """Yield each entry of the lists `quotas` and `groups`, and the entities that it is about."""
    fields = read_fields(source, root, QUOTAS_FILE) or {}
    for item, quotas in _read_entries(source, fields, None):
        yield item, [quota.entity for quota in quotas]
    for item, group in read_groups(source, fields["groups"]) if "groups" in fields else ():
        yield item, [member.entity for member in group.members]


def _read_entries(
    source: Source, fields: Mapping[str, FieldNodes], owner: str | None
) -> Iterator[tuple[yaml.Node, Sequence[Quota]]]:
    if "quotas" in fields:
        for item in read_items(source, fields["quotas"]):
            yield item, _read_entry(source, item, owner)


def quota_rows(quotas: Iterable[Quota], cluster: str) -> Iterator[DesiredRow]:
    """Yield a row for each limit of the quotas."""
    for quota in quotas:
        entity = quota.entity.text
        for limit in quota.limits:
            place = quota.source.name, limit.span.line + 1
            row = DesiredRow(
                cluster, entity, limit.key, limit.value, quota.owner, quota.reason, *place
            )
            if limit.derivation or quota.derivation:
                row = _derive(row, quota, limit, limit.derivation or Derivation(""))
            yield row


def _derive(row: DesiredRow, quota: Quota, limit: Limit, derivation: Derivation) -> DesiredRow:
    text, until, returns_to, reason, returns_to_whole = derivation
    return row._replace(
        derivation=", ".join(filter(None, (quota.derivation, text))),
        until=until,
        returns_to=returns_to,
        reason=reason or row.reason,
        whole=limit.value if limit.is_whole else None,
        whole_after=returns_to if returns_to_whole else None,
        topics=",".join(quota.topics) or None if limit.is_whole or returns_to_whole else None,
    )


def _read_entry(source: Source, node: yaml.Node, owner: str | None) -> Sequence[Quota]:
    fields = read_fields(source, node, QUOTA)
    if fields is None:
        return ()
    types = [kind for kind in ENTITY_TYPES if kind in fields]
    limits = read_limits(source, fields["limits"], types) if "limits" in fields else ()
    reason = read_value(source, fields.get("reason"), read_note)
    if not types and len(fields) == len(node.value):
        remedy = "Add user, client-id or ip, for example user: alice or user: {default: true}."
        source.refuse(node, "This quota has no user, client id or address.", remedy)
    entities = _read_entities(source, [fields[kind] for kind in types])
    silences = read_silences(source, fields["silence"]) if "silence" in fields else ()
    terms = read_terms(source, fields, types)
    derivation = f"list of {len(entities)}" if len(entities) > 1 else None
    return [
        Quota(
            source,
            owner,
            span,
            entity,
            limits,
            reason,
            tuple([silence._replace(entity=entity.text) for silence in silences]),
            derivation,
            terms,
        )
        for span, entity in entities
    ]


def _read_entities(source: Source, fields: Sequence[FieldNodes]) -> list[tuple[Span, Entity]]:
    """Return each combination of the names; none, after adding a problem, if one is invalid."""
    choices = [_read_names(source, field) for field in fields]
    together = {field.name.value: field.name for field in fields}
    if IP in together and len(together) > 1:
        remedy = "Kafka limits connections by address only: write a separate quota."
        source.refuse(together[IP], "ip cannot be combined with user or client-id.", remedy)
        return []
    if not choices or not all(choices):
        return []
    if prod(map(len, choices)) == 1:  # nearly every quota
        return [
            (source.find_span(fields[0].name), Entity.of(dict(part for [(_, part)] in choices)))
        ]
    first = next(at for at, names in enumerate(choices) if len(names) > 1)
    return [
        (source.find_span(names[first][0]), Entity.of(dict(part for _, part in names)))
        for names in product(*choices)
    ]


def _read_names(source: Source, field: FieldNodes) -> list[tuple[yaml.Node, Part]]:
    """Return the name of a field, or each name of its list, with its node.

    None, after adding a problem, if one of them is invalid.
    """
    if not isinstance(field.value, yaml.SequenceNode):
        part = read_name(source, field, read_part)
        return [] if part is None else [(field.value, part)]
    if not field.value.value:
        message = f"{field.name.value} is an empty list."
        source.refuse(field.value, message, "List at least one name, or remove this quota.")
    names: dict[Part, yaml.Node] = {}
    for item in field.value.value:
        part = read_name(source, FieldNodes(field.name, item), read_part)
        if part in names:
            line = names[part].start_mark.line + 1
            message = f"{Entity((part,)).text} is listed twice, first on line {line}."
            source.refuse(item, message, "Remove one.")
        elif part is not None:
            names[part] = item
    is_whole = len(names) == len(field.value.value)
    return [(item, part) for part, item in names.items()] if is_whole else []
