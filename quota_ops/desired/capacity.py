"""The field `capacity` of cluster.yaml: what a broker can serve, compared with what is promised."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import yaml

from quota_ops.desired.entries import place_of
from quota_ops.desired.limits import Limit, read_limits
from quota_ops.desired.quotas_file import Quota
from quota_ops.desired.yaml.fields import FieldNodes, read_value
from quota_ops.desired.yaml.scalars import read_factor, show
from quota_ops.desired.yaml.shapes import CAPACITY
from quota_ops.desired.yaml.source import Source
from quota_ops.findings.codes import CODES, OVERCOMMITTED
from quota_ops.model.finding import Finding
from quota_ops.model.quota import QUOTA_KEYS, format_limit

_NAMED = 3
"""How many owners a finding names."""


class Capacity(NamedTuple):
    """What a broker can serve by key, and how many times this may be promised."""

    source: Source
    limits: tuple[Limit, ...]
    factor: float


def read_capacity(source: Source, field: FieldNodes) -> Capacity:
    """Read the capacity of a broker; adds problems for invalid values."""
    limits = read_limits(source, field, (), CAPACITY)
    nodes = field.value.value if isinstance(field.value, yaml.MappingNode) else ()
    factor = next((FieldNodes(name, node) for name, node in nodes if name.value == "factor"), None)
    return Capacity(source, limits, read_value(source, factor, read_factor) or 1.0)


def check_capacity(capacity: Capacity, quotas: Iterable[Quota]) -> Iterator[Finding]:
    """Yield a finding for each key of which more is promised than the factor allows.

    A promise is the limit of a named entity. Defaults and unlimited quotas promise no amount.
    """
    promised: dict[str, dict[str, float]] = {limit.key: {} for limit in capacity.limits}
    for quota in quotas:
        for limit in quota.limits:
            is_amount = limit.value != QUOTA_KEYS[limit.key].unlimited
            if limit.key in promised and is_amount and not quota.entity.has_default:
                owner = show(quota.owner or "no owner")
                sums = promised[limit.key]
                sums[owner] = sums.get(owner, 0.0) + limit.value
    for limit in capacity.limits:
        owners = promised[limit.key]
        total = sum(owners.values())
        if total > limit.value * capacity.factor:
            ordered = sorted(owners.items(), key=lambda owner: (-owner[1], owner[0]))
            most = ", ".join(
                f"{owner} {format_limit(limit.key, value)}" for owner, value in ordered[:_NAMED]
            )
            times = total / limit.value
            message = (
                f"{format_limit(limit.key, total)} of {limit.key} are promised on each broker,"
            )
            message += f" {times:.3g} times the capacity of {format_limit(limit.key, limit.value)};"
            message += f" most by {most}."
            place = place_of(capacity.source, limit.span)
            remedy = CODES[OVERCOMMITTED].remedy
            yield Finding(OVERCOMMITTED, None, limit.key, message, remedy, place)
