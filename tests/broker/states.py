"""What a cluster holds, by the text of the entity and by key; None is a key that is cleared."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from math import isnan, nan

from quota_ops.kafka.cluster import Cluster, open_cluster
from quota_ops.kafka.connection import Connection
from quota_ops.model.alteration import Alteration
from quota_ops.model.entity import Entity
from quota_ops.sandbox.broker import RunningBroker
from tests.looking import seen_in_time

State = Mapping[str, Mapping[str, float | None]]


@contextmanager
def emptied_cluster(broker: RunningBroker) -> Iterator[Cluster]:
    """A broker's cluster; what is stored at the end is cleared."""
    text = f"bootstrap.servers={broker.bootstrap()}"
    connection = Connection.parse(text, name="demo", source="a test")
    with open_cluster(connection, cluster_id=broker.config.cluster_id) as cluster:
        yield cluster
        stored = described(cluster)
        clear = {entity: dict.fromkeys(keys) for entity, keys in stored.items()}
        cluster.apply(alterations(clear))
        assert settled(cluster, {}) == {}


def alterations(state: State) -> tuple[Alteration, ...]:
    """Entities by their text, with the values of their keys, as alterations."""
    return tuple(
        Alteration(
            Entity.parse(entity),
            tuple((key, None if value is None else float(value)) for key, value in keys.items()),
        )
        for entity, keys in state.items()
    )


def described(cluster: Cluster) -> dict[str, dict[str, float | None]]:
    """What the cluster holds; NaN is one object, so that it equals itself."""
    state: dict[str, dict[str, float | None]] = {}
    for entity, key, value in cluster.describe():
        state.setdefault(entity.text, {})[key] = nan if isnan(value) else value
    return state


def settled(cluster: Cluster, expected: State) -> State:
    """What the cluster holds as soon as it is as expected, or after ten seconds."""
    return seen_in_time(lambda: described(cluster), expected)
