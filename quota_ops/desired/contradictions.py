"""Two places of the YAML files that contradict each other.

A problem is listed at one place, with the other: a review shows the one that a branch changed.
"""

from collections.abc import Iterable, Mapping

from quota_ops.desired.cluster_file import ClusterFile
from quota_ops.desired.quotas_file import Quota
from quota_ops.model.plans.scope import Scope
from quota_ops.model.quotas.entity import Entity
from quota_ops.model.text import name_first

_FEW = 10
"""How many entries of a scope a problem names."""


def refuse_repeated_cluster(cluster: ClusterFile, first: ClusterFile) -> None:
    """Add a problem for the second of two folders that declare the same cluster."""
    remedy = "Keep one folder per cluster."
    words = f"The cluster {cluster.policy.cluster_id} is already declared at"
    own, earlier = (file.fields["cluster_id"].value for file in (cluster, first))
    place, known = cluster.source.place(own), first.source.place(earlier)
    span = first.source.find_span(earlier)
    other = first.source.problem_at(span, f"{words} {place}.", remedy)
    cluster.source.refuse(own, f"{words} {known}.", remedy, other)


def refuse_repeated_entities(quotas: Iterable[Quota]) -> None:
    """Add a problem for each quota of an entity that has one already."""
    first: dict[Entity, Quota] = {}
    shares: list[Quota] = []
    for quota in quotas:
        if quota.group is not None:
            shares.append(quota)
            continue
        known = first.setdefault(quota.entity, quota)
        if known is not quota:
            remedy = "Merge the two into one entry."
            words = f"{quota.entity} is declared twice: here and at"
            other = known.source.problem_at(known.span, f"{words} {quota.place}.", remedy)
            quota.refuse(f"{words} {known.place}.", remedy, other)

    _refuse_repeated_shares(shares, first)


def _refuse_repeated_shares(shares: Iterable[Quota], declared: Mapping[Entity, Quota]) -> None:
    """Add a problem for each key of a member that a quota or another group declares too."""
    first: dict[tuple[Entity, str], Quota] = {}
    for quota in shares:
        known = declared.get(quota.entity)
        keys = {limit.key for limit in known.limits} if known else ()
        for limit in quota.limits:
            other = (
                known if limit.key in keys else first.setdefault((quota.entity, limit.key), quota)
            )
            if other is not None and other is not quota:
                words = f"{limit.key} of {quota.entity} is declared at"
                remedy = f"Remove it there, or the member from the group {quota.group}."
                there = other.source.problem_at(other.span, f"{words} {quota.place} too.", remedy)
                quota.refuse(f"{words} {other.place} too.", remedy, there)


def refuse_unmanageable(quotas: Iterable[Quota], cluster: ClusterFile) -> None:
    """Add a problem for each quota that cluster.yaml protects, or that is outside its scope."""
    policy, source = cluster.policy, cluster.source
    scope = Scope(policy)
    allowed = name_first((entity_filter.text for entity_filter in policy.scope), _FEW)
    for quota in quotas:
        if not scope.covers(quota.entity):
            message = f"{quota.entity} is outside the scope of {policy.cluster}."
            quota.refuse(message, f"{source.file} allows {allowed}.")
        protected = scope.find_protection(quota.entity)
        if protected is not None:
            node, remedy = cluster.protect[protected], "Remove this quota, or that protection."
            words = f"This protects {quota.entity}, which has a quota at {quota.place}."
            other = source.problem_at(source.find_span(node), words, "Remove one of the two.")
            quota.refuse(f"{quota.entity} is protected at {source.place(node)}.", remedy, other)
