"""The capacity of a broker, and how much of it Git promises."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from quota_ops.model.clusters.cluster_facts import ClusterFacts
from quota_ops.model.quotas.entity import DEFAULT_TEXT, Entity
from quota_ops.model.quotas.quota import QUOTA_KEYS, THREAD_KEY, add_limits, to_decimal
from quota_ops.model.quotas.rows import DesiredRow

Amounts = tuple[tuple[str, float], ...]
"""Values by quota key, in order of the keys."""

_OF_ONE_THREAD = 100.0


class Capacity(NamedTuple):
    """What a broker can serve, in the unit of each key, and how many times it may be promised."""

    limits: Amounts
    factor: float = 1.0


class Promises(NamedTuple):
    """What Git promises of one key on each broker, by owner (most first), beside the capacity."""

    key: str
    capacity: float
    factor: float
    owners: tuple[tuple[str | None, float], ...]

    @property
    def total(self) -> float:
        """All promises together, in the unit of the key."""
        return add_limits(value for _, value in self.owners)

    @property
    def times(self) -> float:
        """The number of times that the capacity is promised."""
        return self.total / self.capacity

    @property
    def is_beyond(self) -> bool:
        """Whether more is promised than the factor allows."""
        return to_decimal(self.total) > to_decimal(self.capacity) * to_decimal(self.factor)


def sum_promises(
    capacity: Capacity, rows: Iterable[DesiredRow], facts: ClusterFacts | None = None
) -> tuple[Promises, ...]:
    """Return the promises of each key with a capacity, in the order of the keys.

    A promise is the limit of a named entity, and of a limit of the whole cluster the share of a
    broker: defaults and unlimited quotas promise no amount. The threads of the smallest broker are
    its capacity for request_percentage, unless one is declared.
    """
    most = dict(capacity.limits)
    if (threads := _count_threads(facts)) is not None:
        most.setdefault(THREAD_KEY, _OF_ONE_THREAD * threads)
    values: dict[str, dict[str | None, list[float]]] = {key: defaultdict(list) for key in most}
    for row in rows:
        owners = values.get(row.key)
        if owners is None or row.value == QUOTA_KEYS[row.key].unlimited:
            continue
        if DEFAULT_TEXT in row.entity and Entity.parse(row.entity).has_default:
            continue
        owners[row.owner].append(row.value)
    return tuple(
        Promises(key, most[key], capacity.factor, _sum_owners(values[key]))
        for key in QUOTA_KEYS
        if key in most
    )


def _sum_owners(
    values: Mapping[str | None, Iterable[float]],
) -> tuple[tuple[str | None, float], ...]:
    owners = [(owner, add_limits(of_owner)) for owner, of_owner in values.items()]
    return tuple(sorted(owners, key=lambda owner: (-owner[1], owner[0] or "")))


def _count_threads(facts: ClusterFacts | None) -> int | None:
    """Return the threads of the smallest broker; None unless all brokers report theirs."""
    counts = [broker.threads for broker in facts.brokers] if facts else []
    known = [count for count in counts if count is not None]
    return min(known) if known and len(known) == len(counts) else None
