"""A quotas file: its owner, its quotas with their limits and terms, and its groups.

`desired/expand` turns the terms of an entry (a profile, an end, overrides) into limits.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import partial
from itertools import product
from math import prod
from typing import NamedTuple

import yaml

from quota_ops.desired.names import read_part
from quota_ops.desired.yaml import shapes
from quota_ops.desired.yaml.fields import (
    FieldNodes,
    read_fields,
    read_items,
    read_name,
    read_value,
    read_values,
)
from quota_ops.desired.yaml.source import Source, Span
from quota_ops.desired.yaml.values import (
    Misread,
    is_empty_scalar,
    read_note,
    read_text,
    read_time,
    show,
    text_that,
)
from quota_ops.findings.codes import CODES, IDLE_SILENCE, SILENCEABLE
from quota_ops.findings.entity_rules import CURLY
from quota_ops.model.finding import Problem, Silence
from quota_ops.model.quotas.entity import CLIENT_ID, ENTITY_TYPES, IP, USER, Entity
from quota_ops.model.quotas.quota import QUOTA_KEYS, format_limit, parse_limit
from quota_ops.model.quotas.rows import DesiredRow

_OF_CLUSTER = re.compile(r"\s*(per|for|in|of)?\s*(the)?\s*(whole)?\s*cluster$", re.IGNORECASE)
_LONGEST_NUMBER = 40
"""More digits than a double has; the message for a longer text is short."""


class Derivation(NamedTuple):
    """How a limit follows from its line, and when it ends or changes.

    `until` (ISO 8601, UTC) is when the limit ends or changes, `returns_to` the value from then on
    if it is temporary: that of the standing limit, or 0 if there is none. Kafka has no quota of 0.
    `returns_to_whole` is whether that value is one of the whole cluster.
    """

    text: str
    until: str | None = None
    returns_to: float | None = None
    reason: str | None = None
    returns_to_whole: bool = False


class Limit(NamedTuple):
    """A limit of one key, in the key's unit, with its text and the place of its key.

    The text is empty if a profile or a group declares it, not the quota's own limits. `is_whole` is
    whether the limit is for the whole cluster, so that each broker gets a share.
    """

    key: str
    value: float
    text: str
    span: Span
    derivation: Derivation | None = None
    is_whole: bool = False

    @property
    def words(self) -> str:
        """The value as people read it: `300 MiB/s per cluster`."""
        return format_limit(self.key, self.value) + (" per cluster" if self.is_whole else "")


def read_limits(
    source: Source,
    field: FieldNodes | None,
    types: Sequence[str],
    shape: shapes.Shape = shapes.LIMITS,
) -> tuple[Limit, ...]:
    """Read the limits of an entity with these types; adds a problem for each invalid one.

    A `shape` may have other fields besides the keys, which are not read here.
    """
    fields = field and read_fields(source, field.value, shape, field)
    if field is None or fields is None:
        return ()
    if not field.value.value:
        remedy = f"Add at least one limit, for example {shapes.QUOTA.fields['limits'].example}."
        source.refuse(field.value, f"{field.name.value} is empty.", remedy)
    limits = []
    for key, limit in fields.items():
        if key not in QUOTA_KEYS:
            continue
        if not QUOTA_KEYS[key].types.issuperset(types):
            _refuse_key(source, limit, types)
        value = read_value(source, limit, read_limit)
        if value is not None:
            limits.append(Limit(key, value, limit.value.value, source.find_span(limit.name)))
    return tuple(limits)


def _refuse_key(source: Source, limit: FieldNodes, types: Sequence[str]) -> None:
    fitting = [key.name for key in QUOTA_KEYS.values() if key.types.issuperset(types)]
    if fitting:  # otherwise the types cannot be combined, which is a problem of the entity
        message = f"{limit.name.value} does not apply to {' and '.join(types)}."
        source.refuse(limit.name, message, f"Use one of {', '.join(fitting)}.")


def read_limit(key: str, node: yaml.Node) -> float:
    """Read a limit in the key's unit. Raises Misread for anything else."""
    if not isinstance(node, yaml.ScalarNode):
        raise Misread(f"{key} must be one number.")
    if is_empty_scalar(node):
        raise Misread(f"{key} is empty.", "To set no limit, remove the key.")
    if len(node.value) > _LONGEST_NUMBER:
        raise Misread(f"{key} must be one number, not {show(node.value)}.")
    if _OF_CLUSTER.search(node.value):
        number = _OF_CLUSTER.sub("", node.value).strip()
        raise Misread(
            f"{key} applies on each broker, not to the cluster.",
            f"Write cluster_limits: {{{key}: {number}}}.",
        )
    try:
        return parse_limit(QUOTA_KEYS[key], node.value)
    except ValueError as error:
        curly = any(quote in node.value for quote in CURLY)
        raise Misread(f"{key} {error}.", "Remove the curly quotes." if curly else None) from None


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


NO_TERMS = Terms(None, None, Span(0, 0), ())


def read_terms(
    source: Source, fields: Mapping[str, FieldNodes], types: Sequence[str]
) -> Terms | None:
    """Read the terms of an entry for an entity with these types; None if it has none."""
    if not fields.keys() & {"profile", "until", "overrides", "cluster_limits", "topics"}:
        return None
    until = fields.get("until")
    ends = read_value(source, until, read_time)
    items = read_items(source, fields.get("overrides"))
    read = [_read_override(source, item, types) for item in items]
    overrides = _refuse_overlaps(source, [override for override in read if override is not None])
    for override in overrides:
        if ends and ends <= override.start:
            message = f"The quota ends at {ends}, before this override starts."
            remedy = "Write a later time in until of the quota, or remove the override."
            source.refuse_at(override.span, message, remedy)
    rates = _read_cluster_limits(source, fields, types)
    every = (*rates, *(limit for override in overrides for limit in override.limits))
    if "topics" in fields and not any(limit.is_whole for limit in every):
        message = "topics decide which brokers share a limit of the whole cluster."
        source.refuse(fields["topics"].name, message, "Write the limits under cluster_limits.")
    return Terms(
        read_reference(source, fields.get("profile")),
        ends,
        source.find_span((until or next(iter(fields.values()))).name),
        overrides,
        rates,
        _read_topics(source, fields, types),
    )


def _read_cluster_limits(
    source: Source, fields: Mapping[str, FieldNodes], types: Sequence[str]
) -> tuple[Limit, ...]:
    """Read the limits of the whole cluster; adds a problem for what brokers do not share."""
    limits = read_limits(source, fields.get("cluster_limits"), types)
    for limit in limits:
        if QUOTA_KEYS[limit.key].by_controller:
            _refuse_cluster_limit(source, limit, "is enforced by the controller alone")
        elif limit.value == QUOTA_KEYS[limit.key].unlimited:
            _refuse_cluster_limit(source, limit, "is unlimited")
    whole = (limit._replace(is_whole=True) for limit in limits)
    return tuple([limit._replace(derivation=Derivation(limit.words)) for limit in whole])


def _refuse_cluster_limit(source: Source, limit: Limit, why: str) -> None:
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
    for item in read_items(source, field, "topic"):
        topic = read_value(source, FieldNodes(field.name, item), _read_topic)
        if topic in topics:
            source.refuse(item, f"{topic} is listed twice.", "Remove one.")
        elif topic is not None:
            topics[topic] = None
    return tuple(topics)


_read_topic = text_that(
    re.compile(r"[a-zA-Z0-9._-]{1,249}\*?").fullmatch,
    "is neither a topic nor a prefix of topics.",
    "Write a name of letters, digits, '.', '_' and '-', or a prefix like orders-*.",
)
"""Reads a topic's name, or a prefix with `*`. Source: org.apache.kafka.common.internals.Topic."""


def read_reference(source: Source, field: FieldNodes | None) -> Reference | None:
    """Read the name of a profile, with its place."""
    name = read_value(source, field, read_note)
    return None if name is None or field is None else Reference(name, source.find_span(field.value))


def _read_override(source: Source, item: yaml.Node, types: Sequence[str]) -> Override | None:
    fields = read_fields(source, item, shapes.OVERRIDE)
    if fields is None:
        return None
    values = read_values(source, fields, shapes.OVERRIDE)
    limits = read_limits(source, fields.get("limits"), types)
    limits += _read_cluster_limits(source, fields, types)
    start, until = values.get("from") or "", values.get("until")
    if until is None or ("from" in fields and not start):
        return None
    if start >= until:
        remedy = "from is the first moment of the override, until the first one after it."
        source.refuse(fields["until"].value, "The override ends before it starts.", remedy)
        return None
    return Override(
        source.find_span(fields["until"].name), start, until, limits, values.get("reason")
    )


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


_LISTED = "List the codes with quota-ops findings."


def read_silences(source: Source, field: FieldNodes | None) -> tuple[Silence, ...]:
    """Read the entries of a `silence` field, for the whole cluster."""
    silences = []
    for item in read_items(source, field):
        fields = read_fields(source, item, shapes.SILENCE) or {}
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
    terms: Terms
    reason: str | None
    follows_use: bool = False


def read_groups(source: Source, field: FieldNodes | None) -> Iterator[tuple[yaml.Node, Group]]:
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
    fields = read_fields(source, node, shapes.GROUP)
    if fields is None:
        return None
    values = read_values(source, fields, shapes.GROUP)
    members = tuple(_read_members(source, fields.get("members")))
    budget, minimum = (
        read_limits(source, fields.get(name), (USER,)) for name in ("budget", "minimum")
    )
    terms = read_terms(source, fields, (USER,)) or NO_TERMS
    _refuse_idle_minimum(source, budget, minimum)
    name, reason = values.get("name"), values.get("reason")
    if name is None:
        return None
    span = source.find_span(fields["name"].value)
    follows_use = values.get("weights") is not None
    return Group(span, name, members, budget, minimum, terms, reason, follows_use)


def _refuse_idle_minimum(source: Source, budget: Sequence[Limit], minimum: Sequence[Limit]) -> None:
    """Add a problem for each minimum of a key that has no budget: no member would get it."""
    keys = {limit.key for limit in budget}
    for limit in minimum:
        if limit.key not in keys:
            message = f"minimum has {limit.key}, for which the group has no budget."
            remedy = "Add it to budget, or remove it here."
            source.refuse_at(limit.span, message, remedy)


def _read_members(source: Source, field: FieldNodes | None) -> Iterator[Member]:
    lines: dict[Entity, int] = {}
    for item in read_items(source, field, "member"):
        fields = read_fields(source, item, shapes.MEMBER)
        if fields is None:
            continue
        weight = read_values(source, fields, shapes.MEMBER).get("weight")
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
    silences: tuple[Silence, ...] = ()
    derivation: str | None = None
    """Where it comes from, unless its line declares this entity alone: `list of 3`."""
    terms: Terms | None = None
    """What decides its limits besides `limits`; None once they are expanded."""
    group: str | None = None
    """The group of which it is a share."""
    topics: tuple[str, ...] = ()
    """Only brokers that lead partitions of these share its limits of the whole cluster."""
    coming: tuple[Limit, ...] = ()
    """The limits that begin later, of keys without a limit until then."""

    @property
    def place(self) -> str:
        """The place of the entity: `desired_state/demo/payments.yaml:8`."""
        return f"{self.source.file}:{self.span.line + 1}"

    @property
    def other_fields(self) -> tuple[str, ...]:
        """The fields of its entry besides names, limits and reason; only before it is expanded."""
        given = (self.terms._asdict() if self.terms else {}) | {"silence": self.silences}
        return tuple([name for name in shapes.QUOTA.fields if given.get(name)])

    def refuse(self, message: str, remedy: str, other: Problem | None = None) -> None:
        """Add a problem that points at the entity."""
        self.source.refuse_at(self.span, message, remedy, other=other)


class QuotasFile(NamedTuple):
    """A file, its owner with the place of that, its quotas and its groups."""

    source: Source
    owner: str | None
    owner_span: Span
    quotas: tuple[Quota, ...]
    groups: tuple[Group, ...] = ()


def read_quotas_file(source: Source, root: yaml.Node) -> QuotasFile:
    """Read a file; adds a problem for each part that is not valid, and leaves it out."""
    fields = read_fields(source, root, shapes.QUOTAS_FILE) or {}
    owner = read_value(source, fields.get("owner"), read_note)
    entries = _read_entries(source, fields, owner)
    quotas = tuple(quota for _, of_entry in entries for quota in of_entry)
    groups = tuple(group for _, group in read_groups(source, fields.get("groups")))
    span = source.find_span(fields["owner"].place if "owner" in fields else root)
    return QuotasFile(source, owner, span, quotas, groups)


def read_entries(source: Source, root: yaml.Node) -> Iterator[tuple[yaml.Node, list[Entity]]]:
    """Yield each entry of the lists `quotas` and `groups`, and the entities that it is about."""
    fields = read_fields(source, root, shapes.QUOTAS_FILE) or {}
    for item, quotas in _read_entries(source, fields, None):
        yield item, [quota.entity for quota in quotas]
    for item, group in read_groups(source, fields.get("groups")):
        yield item, [member.entity for member in group.members]


def _read_entries(
    source: Source, fields: Mapping[str, FieldNodes], owner: str | None
) -> Iterator[tuple[yaml.Node, Sequence[Quota]]]:
    for item in read_items(source, fields.get("quotas")):
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
    fields = read_fields(source, node, shapes.QUOTA)
    if fields is None:
        return ()
    types = [kind for kind in ENTITY_TYPES if kind in fields]
    limits = read_limits(source, fields.get("limits"), types)
    reason = read_value(source, fields.get("reason"), read_note)
    if not types and len(fields) == len(node.value):
        remedy = "Add user, client-id or ip, for example user: alice or user: {default: true}."
        source.refuse(node, "This quota has no user, client id or address.", remedy)
    entities = _read_entities(source, [fields[kind] for kind in types])
    silences = read_silences(source, fields.get("silence"))
    terms = read_terms(source, fields, types)
    derivation = f"list of {len(entities)}" if len(entities) > 1 else None
    return [
        Quota(
            source,
            owner=owner,
            span=span,
            entity=entity,
            limits=limits,
            reason=reason,
            silences=tuple([silence._replace(entity=entity.text) for silence in silences]),
            derivation=derivation,
            terms=terms,
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
    names: dict[Part, yaml.Node] = {}
    for item in read_items(source, field, "name"):
        part = read_name(source, FieldNodes(field.name, item), read_part)
        if part in names:
            line = names[part].start_mark.line + 1
            message = f"{Entity((part,)).text} is listed twice, first on line {line}."
            source.refuse(item, message, "Remove one.")
        elif part is not None:
            names[part] = item
    is_whole = len(names) == len(field.value.value)
    return [(item, part) for part, item in names.items()] if is_whole else []
