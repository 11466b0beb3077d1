"""Import: the files that declare exactly the quotas that a cluster stores."""

import re
from collections.abc import Iterable
from enum import StrEnum
from typing import Any

from msgspec import Struct

from quota_ops.desired.cluster_file import CLUSTER_YAML
from quota_ops.desired.export import quotas_text
from quota_ops.desired.export.accept import add_below, apply_edits
from quota_ops.desired.export.quotas_text import (
    LeftOut,
    Writable,
    propose_groups,
    propose_profiles,
    split_writable,
)
from quota_ops.desired.yaml.fields import FieldNodes, find_field
from quota_ops.desired.yaml.nodes import compose
from quota_ops.desired.yaml.source import Problems, Source
from quota_ops.model.errors import InvalidInput
from quota_ops.model.plans.policy import Policy
from quota_ops.model.plans.scope import Scope
from quota_ops.model.quotas.entity import CLIENT_ID, IP, USER, Entity
from quota_ops.model.quotas.rows import StoredQuota

_DEFAULTS = "defaults"
_OF_TYPES = {
    (USER,): "users",
    (CLIENT_ID,): "clients",
    (CLIENT_ID, USER): "users-clients",
    (IP,): "addresses",
}
_WORD = re.compile(r"[-._:/@= ]")
_UNSAFE = re.compile(r"[^a-z0-9]+")
_LONGEST = 60


class GroupBy(StrEnum):
    """How quotas are grouped into files: what the quotas of one file have in common."""

    TYPE = "type"
    """The types of their entities; all defaults are together, because they affect everyone."""
    USER = "user"
    """Their user; those without one are grouped by type."""
    PREFIX = "prefix"
    """The first word of their user, else of their client id: `payments-app` is in payments."""
    ONE = "one"
    """Nothing: one file has them all."""


def group_of(entity: Entity, by: GroupBy) -> str:
    """Return the name of an entity's group, which is also the name of its file."""
    names = entity.as_dict()
    name = names.get(USER) if by is GroupBy.USER else names.get(USER) or names.get(CLIENT_ID)
    if by is GroupBy.ONE:
        return "quotas"
    if by is GroupBy.TYPE or name is None:
        return _DEFAULTS if entity.has_default else _OF_TYPES[entity.types]
    name = name if by is GroupBy.USER else _WORD.split(name)[0]
    plain = _UNSAFE.sub("-", name.lower()).strip("-")[:_LONGEST]
    return f"{plain}-quotas" if plain == "cluster" else plain or "others"


def new_cluster_file(cluster_id: str, connection: str) -> str:
    """Return the text of a minimal cluster.yaml."""
    return f"cluster_id: {cluster_id}\nconnection: {connection}\n"


def with_protected(text: str, left_out: Iterable[LeftOut]) -> str:
    """Add the entities that were left out to `protect` in the text of a valid cluster.yaml.

    What an earlier import added is not repeated.
    """
    lines = "".join(entry for entry in quotas_text.protect_lines(left_out) if entry not in text)
    if not lines:
        return text
    field = _find_field(text, "protect")
    if field is None:
        ended = text if text.endswith("\n") else f"{text}\n"
        head = (
            "# Not managed: YAML cannot declare these quotas, or brokers accept no change of them."
        )
        entries = "protect:\n" if "\n  - " in f"\n{lines}" else ""
        return f"{ended}\n{head}\n{entries}{lines}"
    node: Any = field.value
    if node.flow_style:
        items = "".join(
            f"\n  - {text[item.start_mark.index : item.end_mark.index]}" for item in node.value
        )
        before, after = text[: node.start_mark.index].rstrip(" "), text[node.end_mark.index :]
        return f"{before}{items}\n{lines.rstrip()}{after}"
    below = add_below(text, node.value[-1], node, [line[2:] for line in lines.splitlines()])
    return apply_edits(text, [below])


def _find_field(text: str, name: str) -> FieldNodes | None:
    source = Source(CLUSTER_YAML, CLUSTER_YAML, text, Problems())
    return find_field(compose(source), name)


class Imported(Struct, frozen=True):
    """The files by name, what they leave out, and how many entities are not managed here."""

    files: dict[str, str]
    left_out: tuple[LeftOut, ...]
    elsewhere: int
    """Entities that cluster.yaml already protects or leaves out of scope."""


def import_quotas(
    stored: Iterable[StoredQuota],
    *,
    cluster_file: str,
    policy: Policy,
    by: GroupBy,
    owner: str | None,
    with_profiles: bool = False,
    with_groups: bool = False,
) -> Imported:
    """Write the files that declare exactly the stored quotas: their plan writes nothing.

    `cluster_file` is the text of cluster.yaml, `policy` its content. Quotas that a file cannot
    declare are added to its `protect`, each with the reason. With `with_profiles`, the most common
    equal sets of limits become profiles; InvalidInput if cluster.yaml has some already. With
    `with_groups`, equal limits of a file become a group with the sum as its budget.
    """
    scope = Scope(policy)
    writable, left_out = split_writable(stored)
    managed = [
        quota
        for quota in writable
        if scope.covers(quota.entity) and not scope.find_protection(quota.entity)
    ]
    new = tuple(quota for quota in left_out if not scope.find_protection(quota.entity))
    profiles = propose_profiles(managed) if with_profiles else {}
    if profiles:
        if _find_field(cluster_file, "profiles") is not None:
            remedy = "Remove them, or import without --profiles."
            raise InvalidInput(f"{CLUSTER_YAML} already has profiles", remedy)
        cluster_file = f"{cluster_file.rstrip()}\n\n{quotas_text.profile_lines(profiles)}"
    groups: dict[str, list[Writable]] = {}
    for quota in managed:
        groups.setdefault(group_of(quota.entity, by), []).append(quota)
    files = {
        f"{group}.yaml": quotas_text.quotas_file(
            quotas,
            owner or (group if by in {GroupBy.USER, GroupBy.PREFIX} else quotas_text.UNASSIGNED),
            profiles,
            tuple(propose_groups(group, quotas)) if with_groups else (),
        )
        for group, quotas in sorted(groups.items())
    }
    cluster_yaml = {CLUSTER_YAML: with_protected(cluster_file, new)}
    return Imported(cluster_yaml | files, new, len(writable) - len(managed))
