"""Findings about the shares of limits of the whole cluster, once its brokers are known."""

from collections.abc import Iterator, Sequence

from quota_ops.findings.codes import ABOVE_CEILING, CODES, OVERCOMMITTED
from quota_ops.findings.entity_rules import check_limit
from quota_ops.findings.overcommitment import find_overcommitted
from quota_ops.model.clusters.cluster_facts import ClusterFacts
from quota_ops.model.finding import Finding, Location
from quota_ops.model.plans.capacity import DeclaredLimit, sum_promises
from quota_ops.model.plans.policy import Policy
from quota_ops.model.quotas.quota import format_limit
from quota_ops.model.quotas.rows import DesiredRow


def check_shares(
    rows: Sequence[DesiredRow],
    findings: Sequence[Finding],
    policy: Policy,
    facts: ClusterFacts | None = None,
    *,
    is_complete: bool = True,
) -> tuple[list[Finding], list[Finding]]:
    """Return the findings of the files that stay true, and those of the shares.

    `rows` are all rows, divided. Promises are compared only if these are `is_complete`: no quotas
    file is invalid.
    """
    shares = [row for row in rows if row.whole is not None and row.brokers is not None]
    keys, known = {row.key for row in shares}, {finding[:3] for finding in findings}
    stay = [found for found in findings if found.code != OVERCOMMITTED or found.key not in keys]
    new = [
        finding._replace(place=Location(row.file, row.line))
        for row in shares
        for finding in (*_check_share(row), *_check_ceiling(row, policy))
        if finding[:3] not in known
    ]
    if policy.capacity is not None and keys and is_complete:
        promises = sum_promises(policy.capacity, map(DeclaredLimit.of, rows), facts)
        new += find_overcommitted(promise for promise in promises if promise.key in keys)
    return stay, new


def _check_share(row: DesiredRow) -> Iterator[Finding]:
    return check_limit(row.entity, row.key, row.value, is_share=True)


def _check_ceiling(row: DesiredRow, policy: Policy) -> Iterator[Finding]:
    for ceiling in policy.ceilings:
        most = dict(ceiling.each).get(row.key) if ceiling.owner == row.owner else None
        if most is not None and row.value > most:
            share, limit = format_limit(row.key, row.value), format_limit(row.key, most)
            message = f"{row.key} of {row.entity} is {share} on each broker, above the {limit}"
            message += f" that {row.owner} may declare."
            yield Finding(ABOVE_CEILING, row.entity, row.key, message, CODES[ABOVE_CEILING].remedy)
