"""Groups of a quotas file: clients that share one budget."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import yaml

from quota_ops.desired.limits import Limit, read_limits
from quota_ops.desired.names import read_part
from quota_ops.desired.terms import Terms, read_terms
from quota_ops.desired.yaml.fields import (
    FieldNodes,
    read_fields,
    read_items,
    read_name,
    read_values,
)
from quota_ops.desired.yaml.shapes import GROUP, MEMBER
from quota_ops.desired.yaml.source import Source, Span
from quota_ops.model.quotas.entity import CLIENT_ID, USER, Entity


class Member(NamedTuple):
    """A member of a group, and its place."""

    span: Span
    entity: Entity
    weight: int


class Group(NamedTuple):
    """A group: the budget is what its members have together, the minimum is of each.

    `follows_use` is whether the shares follow the use of the members, beside their weights.
    """

    span: Span
    name: str
    members: tuple[Member, ...]
    budget: tuple[Limit, ...]
    minimum: tuple[Limit, ...]
    terms: Terms | None
    reason: str | None
    follows_use: bool = False


def read_groups(source: Source, field: FieldNodes) -> Iterator[tuple[yaml.Node, Group]]:
    """Yield the groups of a `groups` field; adds problems for invalid and repeated ones."""
    names: dict[str, Group] = {}
    for item in read_items(source, field):
        group = _read_group(source, item)
        if group is None:
            continue
        first = names.setdefault(group.name, group)
        if first is not group:
            message = (
                f"The group {group.name} is defined twice, first on line {first.span.line + 1}."
            )
            source.refuse_at(group.span, message, "Rename one of the two.")
        yield item, group


def _read_group(source: Source, node: yaml.Node) -> Group | None:
    fields = read_fields(source, node, GROUP)
    if fields is None:
        return None
    values = read_values(source, fields, GROUP)
    members = tuple(_read_members(source, fields["members"])) if "members" in fields else ()
    budget, minimum = (
        read_limits(source, fields[name], (USER,)) if name in fields else ()
        for name in ("budget", "minimum")
    )
    terms = read_terms(source, fields, (USER,))
    _refuse_idle_minimum(source, budget, minimum)
    if values["name"] is None:
        return None
    span = source.find_span(fields["name"].value)
    follows_use = values["weights"] is not None
    name, reason = values["name"], values["reason"]
    return Group(span, name, members, budget, minimum, terms, reason, follows_use)


def _refuse_idle_minimum(source: Source, budget: Sequence[Limit], minimum: Sequence[Limit]) -> None:
    """Add a problem for each minimum of a key that has no budget: no member would get it."""
    keys = {limit.key for limit in budget}
    for limit in minimum:
        if limit.key not in keys:
            message = f"minimum has {limit.key}, for which the group has no budget."
            remedy = "Add it to budget, or remove it here."
            source.refuse_at(limit.span, message, remedy)


def _read_members(source: Source, field: FieldNodes) -> Iterator[Member]:
    items = read_items(source, field)
    if isinstance(field.value, yaml.SequenceNode) and not items:
        source.refuse(field.value, "members is an empty list.", "List at least one member.")
    lines: dict[Entity, int] = {}
    for item in items:
        fields = read_fields(source, item, MEMBER)
        if fields is None:
            continue
        weight = read_values(source, fields, MEMBER)["weight"]
        types = [kind for kind in (USER, CLIENT_ID) if kind in fields]
        if not types and len(fields) == len(item.value):
            message = "This member has no user or client id."
            source.refuse(item, message, "Add one, for example {user: spark}.")
        parts = [read_name(source, fields[kind], read_part) for kind in types]
        names = [part for part in parts if part is not None]
        if not names or len(names) < len(parts):
            continue
        entity, known = Entity.of(dict(names)), len(lines)
        if entity.has_default:
            message = (
                f"{entity} is a default, which many clients have: they would exceed the budget."
            )
            source.refuse(item, message, "List the members by name.")
            continue
        line = lines.setdefault(entity, item.start_mark.line + 1)
        if len(lines) == known:
            message = f"{entity} is listed twice, first on line {line}."
            source.refuse(item, message, "Remove one; a larger weight gives a larger share.")
            continue
        yield Member(source.find_span(fields[types[0]].name), entity, weight or 1)
