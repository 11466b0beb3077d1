"""The history that the overview of all clusters shows, and what it ranks."""

from quota_ops.model.history.history import (
    FleetHistory,
    OwnerTotal,
    compute_share,
    rank_owners,
    rank_quotas,
)
from tests.unit.fleet_sample import make_day, make_drift


def test_days_of_each_cluster() -> None:
    """A day on which no run compared the cluster is left out."""
    looked = make_day("demo", 1, 0)
    failed = make_day("demo", 2, 0)._replace(declared=None)

    assert FleetHistory([failed, looked]).group_days() == {"demo": [looked]}


def test_ranks() -> None:
    """What drifted most often comes first; quotas without an owner count for none."""
    once, often = make_drift("demo", "alice", 1, "payments"), make_drift("eu", "bob", 7, "search")
    nobody, again = make_drift("demo", "carol", 9, None), make_drift("eu", "dora", 2, "payments")

    assert rank_quotas([once, often, nobody, again]) == [nobody, often, again, once]
    assert rank_owners([once, often, nobody, again]) == [
        OwnerTotal("search", 1, 7),
        OwnerTotal("payments", 2, 3),
    ]


def test_the_share_of_nothing() -> None:
    """A share needs declared quotas."""
    assert (compute_share(3, 4), compute_share(0, 0)) == (75.0, None)
