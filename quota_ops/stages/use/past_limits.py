"""The limits of a time that is over, as far as runs have seen them."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import pairwise
from typing import NamedTuple

from quota_ops.model.clusters.cluster_facts import ClusterFacts
from quota_ops.model.quotas.entity import Entity

Limits = Mapping[Entity, float]
"""The stored values of one quota key."""


class Period(NamedTuple):
    """A time between two looks: each of `limits` may have been in force; none before all looks."""

    start: datetime
    end: datetime
    limits: tuple[Limits, ...]


class Look(NamedTuple):
    """What a cluster stored at a time: values by key and entity."""

    at: datetime
    stored: Mapping[str, Limits]


class PastQuotas(NamedTuple):
    """The comparisons of a cluster by time, the owners of its quotas, and unreadable files."""

    looks: Sequence[Look]
    owners: Mapping[tuple[Entity, str], str | None]
    facts: ClusterFacts | None
    """What the brokers reported about themselves in the last look."""
    troubles: tuple[str, ...]

    def periods(self, key: str, start: datetime, end: datetime) -> list[Period]:
        """Return the periods of a key in a time, without gaps.

        After the last look its values count: a change since then is not known yet.
        """
        looks = [(min(max(start, look.at), end), look.stored.get(key, {})) for look in self.looks]
        if not looks:
            return [Period(start, end, ())]
        found = [Period(start, looks[0][0], ())]
        for (at, limits), (until, later) in pairwise(looks):
            is_same = limits is later or limits == later
            found.append(Period(at, until, (limits,) if is_same else (limits, later)))
        found.append(Period(looks[-1][0], end, (looks[-1][1],)))
        merged: list[Period] = []
        for period in found:
            if merged and merged[-1].limits == period.limits:
                merged[-1] = merged[-1]._replace(end=period.end)
            elif period.start < period.end:
                merged.append(period)
        return merged
