"""Profiles and groups that an import proposes for entities with equal limits."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from quota_ops.desired.export.spelling import spell_limit
from quota_ops.desired.export.writable import Writable
from quota_ops.model.quotas.entity import IP, Entity
from quota_ops.model.quotas.quota import QUOTA_KEYS, parse_limit

Limits = tuple[tuple[str, str], ...]
"""Keys, and their limits as YAML."""
Profiles = Mapping[Limits, str]
"""The names of profiles by their limits."""

_COMMON, _MOST_PROFILES = 3, 10
"""How many entities have the limits of a proposal at least, and how many profiles are proposed."""


class ProposedGroup(NamedTuple):
    """A group with a budget that gives each member its present limit."""

    name: str
    members: tuple[Entity, ...]
    budget: Limits


def propose_profiles(quotas: Iterable[Writable]) -> Profiles:
    """Return the limits that several entities share, most common first, with names to replace."""
    counts = Counter(quota.limits for quota in quotas)
    common = [limits for limits, count in counts.most_common(_MOST_PROFILES) if count >= _COMMON]
    return {limits: f"profile-{number}" for number, limits in enumerate(common, 1)}


def propose_groups(name: str, quotas: Iterable[Writable]) -> Iterator[ProposedGroup]:
    """Yield a group for each set of limits that several named entities of a file share.

    The budget is exactly the sum of their limits. Names follow that of the file.
    """
    alike: defaultdict[Limits, list[Entity]] = defaultdict(list)
    for quota in quotas:
        if not quota.entity.has_default and IP not in quota.entity.types:
            alike[quota.limits].append(quota.entity)
    number = 0
    for limits, members in alike.items():
        if len(members) >= _COMMON and (budget := _multiply(limits, len(members))):
            number += 1
            title = name if number == 1 else f"{name}-{number}"
            yield ProposedGroup(title, tuple(members), budget)


def _multiply(limits: Limits, times: int) -> Limits | None:
    """Return the limits so many times; None if a budget cannot have that value and share it."""
    budget = []
    for name, text in limits:
        key = QUOTA_KEYS[name]
        value = parse_limit(key, text)
        total = spell_limit(key, value * times)
        if value == key.unlimited or not value.is_integer() or total is None:
            return None
        budget.append((name, total))
    return tuple(budget)
