"""Desired state made from what a cluster holds."""

from collections.abc import Iterable
from dataclasses import dataclass

from quota_ops.desired.cluster_file import CLUSTER_YAML
from quota_ops.desired.export.groups import GroupBy, group_of, owner_of
from quota_ops.desired.export.protection import with_protected
from quota_ops.desired.export.quotas_text import quotas_file
from quota_ops.desired.export.writable import LeftOut, Writable, sort_out
from quota_ops.model.borders import Borders
from quota_ops.model.policy import Policy
from quota_ops.model.rows import StoredQuota


@dataclass(frozen=True, slots=True)
class Imported:
    """The files by their names, what they leave out, and how many entities are not ours to say."""

    files: dict[str, str]
    left_out: tuple[LeftOut, ...]
    elsewhere: int
    """Entities that cluster.yaml protects or keeps out of its scope already."""


def import_quotas(
    stored: Iterable[StoredQuota],
    *,
    cluster_file: str,
    policy: Policy,
    by: GroupBy,
    owner: str | None,
) -> Imported:
    """The files that ask for exactly what is stored: a plan of them has nothing to write.

    `cluster_file` is the text of cluster.yaml, `policy` what it says. What a quotas file cannot
    hold is added to its `protect`, each with the reason.
    """
    scope, protect = Borders(policy.scope), Borders(policy.protect)
    writable, left_out = sort_out(stored)
    ours = [
        one
        for one in writable
        if scope.meets(one.entity) is not None and protect.meets(one.entity) is None
    ]
    new = tuple(one for one in left_out if protect.meets(one.entity) is None)
    groups: dict[str, list[Writable]] = {}
    for one in ours:
        groups.setdefault(group_of(one.entity, by), []).append(one)
    files = {
        f"{group}.yaml": quotas_file(quotas, owner or owner_of(group, by))
        for group, quotas in sorted(groups.items())
    }
    cluster_yaml = {CLUSTER_YAML: with_protected(cluster_file, new)}
    return Imported(cluster_yaml | files, new, len(writable) - len(ours))
