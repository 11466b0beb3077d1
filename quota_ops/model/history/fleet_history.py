"""The part of the history that the overview of all clusters shows, and its totals of each day."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from quota_ops.model.history.history import DayHistory
from quota_ops.model.quotas.tables import derive_table


class QuotaDrift(NamedTuple):
    """A row of QUOTA_DRIFTS: a quota that runs found drifted, how many of them, and when."""

    cluster: str
    entity: str
    key: str
    owner: str | None
    times_seen: int
    first_seen: str
    last_seen: str


QUOTA_DRIFTS = derive_table("quota_drifts", QuotaDrift)


class FleetHistory(NamedTuple):
    """The last days of all clusters."""

    days: Sequence[DayHistory] = ()
    """By date."""
    quotas: Sequence[QuotaDrift] = ()
    """The quotas that drifted in these days."""
    changes: Mapping[str, str] = {}
    """When a run last wrote a quota that is still managed, by the name of the cluster."""
    looks: Mapping[str, str] = {}
    """When a run last compared a cluster that this overview does not know, by its name."""

    def group_days(self) -> Mapping[str, Sequence[DayHistory]]:
        """Return the days of each cluster on which a run compared it."""
        found: dict[str, list[DayHistory]] = defaultdict(list)
        for day in self.days:
            if day.declared is not None:
                found[day.cluster].append(day)
        return found


class OwnerTotal(NamedTuple):
    """An owner's quotas that drifted, and how often runs found one of them drifted."""

    owner: str
    quotas: int
    times: int


def rank_quotas(quotas: Iterable[QuotaDrift]) -> list[QuotaDrift]:
    """Return the quotas that most runs found drifted first."""
    return sorted(quotas, key=lambda quota: (-quota.times_seen, quota.cluster, quota.entity))


def rank_owners(quotas: Iterable[QuotaDrift]) -> list[OwnerTotal]:
    """Return the owners whose quotas were found drifted most often first, without "no owner"."""
    times: dict[str, list[int]] = defaultdict(list)
    for quota in quotas:
        if quota.owner is not None:
            times[quota.owner].append(quota.times_seen)
    totals = (OwnerTotal(owner, len(each), sum(each)) for owner, each in times.items())
    return sorted(totals, key=lambda total: (-total.times, -total.quotas, total.owner))


def compute_share(in_sync: int, declared: int) -> float | None:
    """Return the percentage that is in sync; None if nothing is declared."""
    return 100 * in_sync / declared if declared else None
