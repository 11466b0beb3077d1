"""describe, validate and apply: what a real broker accepts, rejects and returns."""

import time
from collections.abc import Iterator

import pytest

from quota_ops.kafka.client.broker_client import BrokerClient
from quota_ops.kafka.cluster import Cluster, open_cluster
from quota_ops.kafka.connection import Connection
from quota_ops.kafka.messages import build_describe_request
from quota_ops.lab.kafka.broker import RunningBroker
from quota_ops.model.errors import InvalidInput, Unreachable
from quota_ops.model.quotas.alteration import Alteration
from quota_ops.model.quotas.entity import MAX_NAME_BYTES, Entity
from tests.broker.states import described, emptied_cluster
from tests.writing import alterations, write


@pytest.fixture(name="cluster")
def _cluster(broker: RunningBroker) -> Iterator[Cluster]:
    """Return the shared broker; what is stored at the end of a test is cleared."""
    with emptied_cluster(broker) as cluster:
        yield cluster


def test_the_longest_names(cluster: Cluster) -> None:
    """32,767 bytes of UTF-8 are accepted; one more is rejected before anything is sent."""
    longest = {
        f"user={'a' * MAX_NAME_BYTES}": {"producer_byte_rate": 1.0},
        f"client-id={'名' * (MAX_NAME_BYTES // 3)}": {"producer_byte_rate": 2.0},
    }
    write(cluster, longest)

    with pytest.raises(InvalidInput) as error:
        cluster.apply(alterations({f"user=a{'é' * 20_000}": {"producer_byte_rate": 1.0}}))
    assert str(error.value) == (
        f"user 'a{'é' * 39}'...: the name takes 40,001 bytes; "
        "Kafka's protocol carries at most 32,767."
    )
    with pytest.raises(InvalidInput, match="the name cannot be encoded in UTF-8"):
        cluster.apply([Alteration(Entity.of({"user": "\ud800"}), (("producer_byte_rate", 1.0),))])


def test_an_entity_twice_is_our_mistake(cluster: Cluster) -> None:
    """Kafka would apply the first of two and reject both, so two are never sent."""
    alice = Alteration(Entity.of({"user": "alice"}), (("producer_byte_rate", 1.0),))
    with pytest.raises(ValueError, match="an entity occurs twice"):
        cluster.apply([alice, alice])


def test_nothing_asks_nothing(cluster: Cluster) -> None:
    """No alterations give no outcomes, without a request that needs permission."""
    assert cluster.validate([]) == ()
    assert cluster.apply([]) == ()


def test_a_throttle_is_waited_for(cluster: Cluster, broker: RunningBroker) -> None:
    """A throttled user waits as long as the broker requires, within its timeout."""
    quota = {"client-id=slow": {"request_percentage": 0.001}}
    write(cluster, quota)
    text = f"bootstrap.servers={broker.bootstrap()}\nclient.id=slow"
    connection = Connection.parse(text, name="demo", source="a test")
    with open_cluster(connection, cluster_id=None) as slow:
        started = time.monotonic()
        assert [described(slow) for _ in range(3)] == [quota] * 3
        assert 1.0 < time.monotonic() - started < 10.0
    client = BrokerClient(connection, cluster.brokers[0], 10.0)
    client.send(build_describe_request(), 10.0)
    words = (
        r"throttles this client for [\d.]+ s, longer than the 0.3 s that the request may take\. "
        r"Nothing was sent\.$"
    )
    with pytest.raises(Unreachable, match=words):
        client.send(build_describe_request(), 0.3)
    client.close()
