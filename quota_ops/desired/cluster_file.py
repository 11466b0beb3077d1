"""cluster.yaml: a cluster's policy, and where it declares protected entities."""

from collections.abc import Callable
from typing import Any, NamedTuple

import yaml

from quota_ops.desired.capacity import DeclaredCapacity, read_capacity
from quota_ops.desired.ceilings import DeclaredCeilings, read_ceilings
from quota_ops.desired.entries import read_freezes, read_retired_brokers
from quota_ops.desired.names import read_filter_part
from quota_ops.desired.owners import Nodes as OwnerNodes
from quota_ops.desired.owners import read_owners
from quota_ops.desired.profiles import Profiles, SharedUse, read_profiles, read_uses
from quota_ops.desired.quotas_file import read_silences
from quota_ops.desired.usage import read_usage
from quota_ops.desired.yaml.fields import (
    FieldNodes,
    read_fields,
    read_given,
    read_items,
    read_name,
    read_values,
)
from quota_ops.desired.yaml.shapes import (
    CLUSTER_FILE,
    FILTER,
    FREEZE,
    GUARDS,
    MEMORY,
    RETIRED_BROKER,
    Shape,
)
from quota_ops.desired.yaml.source import Source
from quota_ops.model.finding import Silence
from quota_ops.model.plans.policy import Freeze, GuardThresholds, Memory, Policy, RetiredBroker
from quota_ops.model.quotas.entity import IP
from quota_ops.model.quotas.filter import EntityFilter

CLUSTER_YAML = "cluster.yaml"
CLUSTER_YML = "cluster.yml"
"""A likely misspelling of cluster.yaml, and an unlikely name for a quotas file."""
PLACEHOLDER = "REPLACE-WITH-THE-CLUSTER-ID"


class ClusterFile(NamedTuple):
    """A cluster's policy, the node of its id, and the node of each filter in `protect`.

    `silences` are not part of the policy: they affect reports, never writes.
    """

    policy: Policy
    source: Source
    id_node: yaml.Node
    protect: dict[EntityFilter, yaml.Node]
    silences: tuple[Silence, ...]
    owner_nodes: OwnerNodes
    profiles: Profiles
    uses: tuple[SharedUse, ...]
    capacity: DeclaredCapacity | None
    ceilings: DeclaredCeilings


def read_cluster_file(source: Source, root: yaml.Node, cluster: str) -> ClusterFile | None:
    """Read the policy of the folder `cluster`; None, after adding problems, if it is invalid."""
    before = len(source.problems)
    fields = read_fields(source, root, CLUSTER_FILE) or {}
    values = read_given(source, fields, CLUSTER_FILE)
    values |= {
        name: read(source, fields[name]) for name, read in _PART_READERS.items() if name in fields
    }
    protect = _read_filters(source, fields["protect"]) if "protect" in fields else {}
    if "scope" in fields:
        values["scope"] = tuple(_read_filters(source, fields["scope"]))
        if fields["scope"].value.value == []:
            remedy = "To allow every entity, remove it."
            source.refuse(fields["scope"].name, "scope is empty and allows no entity.", remedy)
    silences = read_silences(source, fields["silence"]) if "silence" in fields else ()
    owner_nodes: OwnerNodes = {}
    if "owners" in fields:
        values["owners"], owner_nodes = read_owners(source, fields["owners"])
    profiles = read_profiles(source, fields["profiles"]) if "profiles" in fields else {}
    ceilings = DeclaredCeilings()
    if "ceilings" in fields:
        ceilings = read_ceilings(source, fields["ceilings"])
        values["ceilings"] = ceilings.ceilings
    capacity = read_capacity(source, fields["capacity"]) if "capacity" in fields else None
    values["capacity"] = capacity and capacity.capacity
    uses = read_uses(source, fields["use"]) if "use" in fields else ()
    if len(source.problems) > before:
        return None
    return ClusterFile(
        policy=Policy(cluster=cluster, protect=tuple(protect), **values),
        source=source,
        id_node=fields["cluster_id"].value,
        protect=protect,
        silences=silences,
        owner_nodes=owner_nodes,
        profiles=profiles,
        uses=uses,
        capacity=capacity,
        ceilings=ceilings,
    )


def refuse_placeholder(cluster: ClusterFile) -> None:
    """Refuse the placeholder that `init` writes if it is called without a cluster id."""
    if cluster.policy.cluster_id == PLACEHOLDER:
        cluster.source.refuse(
            cluster.id_node,
            f"{PLACEHOLDER} is a placeholder, not a cluster id.",
            "Get the id with quota-ops ping or kafka-cluster.sh cluster-id.",
        )


def _read_guards(source: Source, field: FieldNodes) -> GuardThresholds:
    fields = read_fields(source, field.value, GUARDS, field) or {}
    return GuardThresholds(**read_given(source, fields, GUARDS))


def _read_memory(source: Source, field: FieldNodes) -> Memory:
    fields = read_fields(source, field.value, MEMORY, field) or {}
    return Memory(**read_given(source, fields, MEMORY))


_PART_READERS: dict[str, Callable[[Source, FieldNodes], Any]] = {
    "guards": _read_guards,
    "freeze": read_freezes,
    "memory": _read_memory,
    "retired_brokers": read_retired_brokers,
    "usage": read_usage,
}


def _read_filters(source: Source, field: FieldNodes) -> dict[EntityFilter, yaml.Node]:
    """Read the filters of a list, each with its node."""
    filters: dict[EntityFilter, yaml.Node] = {}
    for item in read_items(source, field):
        fields = read_fields(source, item, FILTER)
        if fields is None:
            continue
        if not item.value:
            source.refuse(
                item,
                "This entry has no user, client id or address.",
                "Add one, for example {user: any}.",
            )
        if IP in fields and len(fields) > 1:
            message = "ip cannot be combined with user or client-id."
            source.refuse(fields[IP].name, message, "Write two entries.")
        parts = [read_name(source, part, read_filter_part) for part in fields.values()]
        known = EntityFilter(tuple(part for part in parts if part is not None))
        filters.setdefault(known, item)
    return filters


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
