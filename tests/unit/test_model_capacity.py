"""What Git promises on each broker beside its capacity."""

import pytest

from quota_ops.model.clusters.cluster_facts import BrokerFacts, ClusterFacts
from quota_ops.model.plans.capacity import Capacity, Promises, sum_promises
from quota_ops.model.quotas.quota import QUOTA_KEYS
from quota_ops.model.quotas.rows import DesiredRow

RATE, PERCENT = "producer_byte_rate", "request_percentage"


def declare(owner: str | None, entity: str, key: str, value: float) -> DesiredRow:
    """Return the row of a limit."""
    return DesiredRow("demo", entity, key, value, owner, None, "a.yaml", 3)


LIMITS = (
    declare("search", "user=carol", RATE, 30.0),
    declare("payments", "user=alice", RATE, 40.0),
    declare("payments", "user=alice,client-id=app", RATE, 50.0),
    declare(None, "client-id=app", RATE, 30.0),
    declare("platform", "user=<default>", RATE, 1000.0),
    declare("payments", "user=bob", RATE, QUOTA_KEYS[RATE].unlimited),
    declare("payments", "user=bob", PERCENT, 100.0),
    declare("payments", "user=bob", "consumer_byte_rate", 100.0),
)
OF_RATES = (("payments", 90.0), (None, 30.0), ("search", 30.0))


def facts(*threads: int | None) -> ClusterFacts:
    """Return a cluster with brokers of so many I/O threads, and one network thread each."""
    brokers = (
        BrokerFacts(number, "", network_threads=1, io_threads=io)
        for number, io in enumerate(threads)
    )
    return ClusterFacts(tuple(brokers), "User:quota-ops")


@pytest.mark.parametrize(
    ("known", "percent"),
    [
        (None, None),
        (facts(), None),
        (facts(7, None), None),
        (facts(7, 3), Promises(PERCENT, 400.0, 2.0, (("payments", 100.0),))),
    ],
)
def test_promises_of_named_entities_count(
    known: ClusterFacts | None, percent: Promises | None
) -> None:
    """Defaults and unlimited quotas promise no amount; the smallest broker has the threads."""
    found = sum_promises(Capacity(((RATE, 100.0),), 2.0), LIMITS, known)

    of_rates = Promises(RATE, 100.0, 2.0, OF_RATES)
    assert found == ((of_rates,) if percent is None else (of_rates, percent))
    assert (of_rates.total, of_rates.times, of_rates.is_beyond) == (150.0, 1.5, False)


def test_a_declared_percentage_comes_before_the_threads() -> None:
    """A declared capacity for request_percentage is used as it is, and a factor of 1 is the end."""
    (found,) = sum_promises(Capacity(((PERCENT, 99.0),)), LIMITS, facts(7, 3))

    assert (found.capacity, found.is_beyond) == (99.0, True)
