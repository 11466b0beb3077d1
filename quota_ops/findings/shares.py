"""Findings about limits that add up to too much on a broker, with shares of cluster limits."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence

from quota_ops.findings.codes import ABOVE_CEILING, OVERCOMMITTED, make_finding
from quota_ops.findings.entity_rules import check_limit
from quota_ops.model.clusters.cluster_facts import ClusterFacts
from quota_ops.model.finding import Finding, Location
from quota_ops.model.plans.capacity import Promises, sum_promises
from quota_ops.model.plans.ceilings import index_ceilings
from quota_ops.model.plans.policy import Policy
from quota_ops.model.quotas.quota import format_limit
from quota_ops.model.quotas.rows import DesiredRow, Key
from quota_ops.model.text import counted, is_visible, plural

_NAMED = 3
"""How many owners a finding names."""


def check_shares(
    rows: Sequence[DesiredRow],
    findings: Sequence[Finding],
    policy: Policy,
    facts: ClusterFacts | None = None,
    *,
    is_complete: bool = True,
) -> tuple[list[Finding], list[Finding]]:
    """Return the findings about files that are still true, and the findings about shares.

    `rows` are all rows, divided. Promises are compared only if these are `is_complete`: no quotas
    file is invalid.
    """
    shares = [row for row in rows if row.whole is not None and row.brokers is not None]
    keys, known = {row.key for row in shares}, {finding.identity for finding in findings}
    stay = [found for found in findings if found.code != OVERCOMMITTED or found.key not in keys]
    most = index_ceilings(policy.ceilings)
    new = [
        finding._replace(place=Location(row.file, row.line))
        for row in shares
        for finding in (
            *check_limit(row.entity, row.key, row.value, is_share=True),
            *check_ceiling(row.id, row.value, row.owner, most, how=" on each broker"),
        )
        if finding.identity not in known
    ]
    if policy.capacity is not None and keys and is_complete:
        promises = sum_promises(policy.capacity, rows, facts)
        new += find_overcommitted(promise for promise in promises if promise.key in keys)
    return stay, new


def check_ceiling(
    row: Key,
    value: float,
    owner: str | None,
    most: Mapping[tuple[str | None, str], float],
    how: str,
) -> Iterator[Finding]:
    """Yield a finding if a limit is above the ceiling of its owner; `how` follows its value."""
    entity, key = row
    highest = most.get((owner, key), value)
    if value > highest:
        message = f"{key} of {entity} is {format_limit(key, value)}{how}, above the "
        message += f"{format_limit(key, highest)} that {owner} may declare."
        yield make_finding(ABOVE_CEILING, message, entity=entity, key=key)


def find_overcommitted(
    promises: Iterable[Promises], uncounted: Mapping[str, int] | None = None
) -> Iterator[Finding]:
    """Yield a finding for each key that is promised beyond the factor.

    `uncounted` is how many limits of the whole cluster a key has beside its promises.
    """
    for promise in promises:
        if not promise.is_beyond:
            continue
        key = promise.key
        most = ", ".join(
            f"{_show_owner(owner)} {format_limit(key, value)}"
            for owner, value in promise.owners[:_NAMED]
        )
        message = (
            f"{format_limit(key, promise.total)} of {key} are promised on each broker,"
            f" {promise.times:.3g} times the capacity of {format_limit(key, promise.capacity)};"
            f" most by {most}."
        )
        if others := (uncounted or {}).get(key):
            verb = plural(others, "is", "are")
            message += f" {counted(others, 'limit')} of the whole cluster {verb} not counted here."
        yield make_finding(OVERCOMMITTED, message, key=key)


def _show_owner(owner: str | None) -> str:
    return "no owner" if owner is None else owner if is_visible(owner) else json.dumps(owner)
