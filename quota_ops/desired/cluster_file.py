"""cluster.yaml: a cluster's policy, and the places in it that checks point at."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import yaml

from quota_ops.desired.names import read_filter_part
from quota_ops.desired.owners import Nodes as OwnerNodes
from quota_ops.desired.owners import read_owners
from quota_ops.desired.profiles import Profiles, SharedUse, read_profiles, read_uses
from quota_ops.desired.quotas_file import Limit, read_limits, read_silences
from quota_ops.desired.yaml import shapes
from quota_ops.desired.yaml.fields import (
    FieldNodes,
    find_field,
    read_entry,
    read_fields,
    read_items,
    read_name,
    read_named,
    read_part,
    read_value,
    read_values,
)
from quota_ops.desired.yaml.source import Source
from quota_ops.desired.yaml.values import FACTOR, LABEL, read_text
from quota_ops.model.finding import Location, Silence
from quota_ops.model.plans.capacity import Amounts, Capacity
from quota_ops.model.plans.ceilings import Ceiling
from quota_ops.model.plans.policy import Freeze, GuardThresholds, Memory, Policy, RetiredBroker
from quota_ops.model.quotas.entity import IP
from quota_ops.model.quotas.filter import EntityFilter
from quota_ops.model.usage.usage import UsagePolicy

CLUSTER_YAML = "cluster.yaml"
CLUSTER_YML = "cluster.yml"
"""A likely misspelling of cluster.yaml, and an unlikely name for a quotas file."""
PLACEHOLDER = "REPLACE-WITH-THE-CLUSTER-ID"
MOST_FREEZES = 100
"""The most windows of a cluster; each is checked before every write."""


class ClusterFile(NamedTuple):
    """A cluster's policy, its fields, and the node of each filter in `protect`.

    `silences` are not part of the policy: they affect reports, never writes.
    """

    policy: Policy
    source: Source
    fields: Mapping[str, FieldNodes]
    protect: dict[EntityFilter, yaml.Node]
    silences: tuple[Silence, ...]
    owner_nodes: OwnerNodes
    profiles: Profiles
    uses: tuple[SharedUse, ...]

    def locate(self, field: str, name: str | None) -> Location | None:
        """Return where a field has a name: the capacity of a key, or the ceiling of an owner."""
        found = find_field(self.fields[field].value, name or "")
        return found and self.source.locate(self.source.find_span(found.name))


def read_cluster_file(source: Source, root: yaml.Node, cluster: str) -> ClusterFile | None:
    """Read the policy of the folder `cluster`; None, after adding problems, if it is invalid."""
    before = len(source.problems)
    fields = read_fields(source, root, shapes.CLUSTER_FILE) or {}
    values = read_values(source, fields, shapes.CLUSTER_FILE)
    values |= {
        name: read(source, fields[name]) for name, read in _PART_READERS.items() if name in fields
    }
    protect = values.pop("protect", {})
    silences = values.pop("silence", ())
    profiles = values.pop("profiles", {})
    uses = values.pop("use", ())
    owners, owner_nodes = values.pop("owners", ((), {}))
    if len(source.problems) > before:
        return None
    return ClusterFile(
        Policy(cluster, protect=tuple(protect), owners=owners, **values),
        source,
        fields,
        protect,
        silences,
        owner_nodes,
        profiles,
        uses,
    )


def refuse_placeholder(cluster: ClusterFile) -> None:
    """Refuse the placeholder that `init` writes if it is called without a cluster id."""
    if cluster.policy.cluster_id == PLACEHOLDER:
        cluster.source.refuse(
            cluster.fields["cluster_id"].value,
            f"{PLACEHOLDER} is a placeholder, not a cluster id.",
            "Get the id with quota-ops ping or kafka-cluster.sh cluster-id.",
        )


def _read_scope(source: Source, field: FieldNodes) -> tuple[EntityFilter, ...]:
    if field.value.value == []:
        remedy = "To allow every entity, remove it."
        source.refuse(field.name, "scope is empty and allows no entity.", remedy)
    return tuple(_read_filters(source, field))


def _read_filters(source: Source, field: FieldNodes) -> dict[EntityFilter, yaml.Node]:
    """Read the filters of a list, each with its node."""
    filters: dict[EntityFilter, yaml.Node] = {}
    for item in read_items(source, field):
        fields = read_fields(source, item, shapes.FILTER)
        if fields is None:
            continue
        if not item.value:
            message = "This entry has no user, client id or address."
            source.refuse(item, message, "Add one, for example {user: any}.")
        if IP in fields and len(fields) > 1:
            message = "ip cannot be combined with user or client-id."
            source.refuse(fields[IP].name, message, "Write two entries.")
        parts = [read_name(source, part, read_filter_part) for part in fields.values()]
        known = EntityFilter(tuple(part for part in parts if part is not None))
        filters.setdefault(known, item)
    return filters


def _read_freezes(source: Source, field: FieldNodes) -> tuple[Freeze, ...]:
    items = read_items(source, field)
    if len(items) > MOST_FREEZES:
        remedy = f"Write at most {MOST_FREEZES}; a cron field takes ranges, for example 1-5."
        source.refuse(field.name, f"freeze has {len(items):,} windows.", remedy)
        return ()
    entries = (read_entry(source, item, shapes.FREEZE) for item in items)
    return tuple(Freeze(**values) for values in entries if values is not None)


def _read_retired_brokers(source: Source, field: FieldNodes) -> tuple[RetiredBroker, ...]:
    found: dict[int, RetiredBroker] = {}
    for item in read_items(source, field):
        values = read_entry(source, item, shapes.RETIRED_BROKER)
        if values is None:
            continue
        broker = RetiredBroker(**values)
        if broker.id in found:
            source.refuse(item, f"Broker {broker.id} is listed twice.", "Remove one.")
        found[broker.id] = broker
    return tuple(found[broker_id] for broker_id in sorted(found))


def _read_capacity(source: Source, field: FieldNodes) -> Capacity:
    limits = read_limits(source, field, (), shapes.CAPACITY)
    factor = read_value(source, find_field(field.value, "factor"), FACTOR.read)
    return Capacity(_sort_amounts(limits), factor or Capacity(()).factor)


def _read_ceilings(source: Source, field: FieldNodes) -> tuple[Ceiling, ...]:
    ceilings: dict[str, Ceiling] = {}
    example = "{payments: {producer_byte_rate: 200 MiB}}"
    for owner, nodes in read_named(source, field, "owner", example):
        limits = read_limits(source, nodes, (), shapes.CEILING)
        totals = read_limits(source, find_field(nodes.value, "total"), ())
        ceilings[owner] = Ceiling(owner, _sort_amounts(limits), _sort_amounts(totals))
    return tuple(ceilings[owner] for owner in sorted(ceilings))


def _sort_amounts(limits: tuple[Limit, ...]) -> Amounts:
    return tuple(sorted((limit.key, limit.value) for limit in limits))


def _read_usage(source: Source, field: FieldNodes) -> UsagePolicy | None:
    """Read where use is measured; None, after adding problems, if it is invalid."""
    before = len(source.problems)
    fields = read_fields(source, field.value, shapes.USAGE, field) or {}
    found = read_values(source, fields, shapes.USAGE)
    for name, shape in _USAGE_PARTS.items():
        if name in fields:
            found[name] = tuple(read_part(source, fields[name], shape).items())
    if "match" in fields:
        found["match"] = _read_match(source, fields["match"])
    return None if len(source.problems) > before else UsagePolicy(**found)


_USAGE_PARTS = {
    "metrics": shapes.METRICS,
    "throttle_times": shapes.METRICS,
    "labels": shapes.USAGE_LABELS,
}


def _read_match(source: Source, field: FieldNodes) -> tuple[tuple[str, str], ...]:
    if not isinstance(field.value, yaml.MappingNode):
        remedy = "For example match: {cluster: orders}."
        source.refuse(field.place, "match must be a mapping of labels.", remedy)
        return ()
    labels: dict[str, str] = {}
    for name, value in field.value.value:
        label = read_value(source, FieldNodes(name, name), LABEL.read)
        text = read_value(source, FieldNodes(name, value), read_text)
        if label in labels:
            source.refuse(name, f"{label} is set twice.", "Remove one.")
        elif label is not None and text is not None:
            labels[label] = text
    return tuple(labels.items())


_PART_READERS: dict[str, Callable[[Source, FieldNodes], Any]] = {
    "guards": lambda source, field: GuardThresholds(**read_part(source, field, shapes.GUARDS)),
    "freeze": _read_freezes,
    "memory": lambda source, field: Memory(**read_part(source, field, shapes.MEMORY)),
    "retired_brokers": _read_retired_brokers,
    "usage": _read_usage,
    "scope": _read_scope,
    "protect": _read_filters,
    "silence": read_silences,
    "owners": read_owners,
    "profiles": read_profiles,
    "ceilings": _read_ceilings,
    "capacity": _read_capacity,
    "use": read_uses,
}
"""The readers of the fields that have fields of their own."""
