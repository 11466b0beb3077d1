"""States: the values that a cluster stores, by entity text and key; None is a cleared key."""

from collections.abc import Iterator
from contextlib import contextmanager
from math import isnan, nan

from quota_ops.kafka.cluster import Cluster, open_cluster
from quota_ops.kafka.connection import Connection
from quota_ops.lab.kafka.broker import RunningBroker
from tests.looking import seen_in_time
from tests.writing import State, empty


@contextmanager
def emptied_cluster(broker: RunningBroker) -> Iterator[Cluster]:
    """Return a broker's cluster; what is stored at the end is cleared."""
    text = f"bootstrap.servers={broker.bootstrap()}"
    connection = Connection.parse(text, name="demo", source="a test")
    with open_cluster(connection, cluster_id=broker.config.cluster_id) as cluster:
        yield cluster
        empty(cluster)


def described(cluster: Cluster) -> dict[str, dict[str, float | None]]:
    """Return what the cluster stores; NaN is one object, so that it equals itself."""
    state: dict[str, dict[str, float | None]] = {}
    for entity, key, value in cluster.describe():
        state.setdefault(entity.text, {})[key] = nan if isnan(value) else value
    return state


def settled(cluster: Cluster, expected: State) -> State:
    """Return what the cluster stores as soon as it is as expected, or after a minute."""
    return seen_in_time(lambda: described(cluster), expected)
