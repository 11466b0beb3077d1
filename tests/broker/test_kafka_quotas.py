"""describe, validate and apply: what a real broker takes, refuses and gives back."""

import gc
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from quota_ops.kafka.cluster import Cluster, open_cluster
from quota_ops.kafka.connection import Connection
from quota_ops.model.alteration import Alteration
from quota_ops.model.entity import MAX_NAME_BYTES, Entity
from quota_ops.model.errors import InvalidInput
from quota_ops.model.outcome import EntityAnswer
from quota_ops.sandbox.broker import RunningBroker

CASES = tuple(
    pytest.param(case, id=f"{path.stem}: {case['case']}")
    for path in sorted((Path(__file__).parents[1] / "cases" / "broker").glob("*.yaml"))
    for case in yaml.safe_load(path.read_text("utf-8"))
)
State = Mapping[str, Mapping[str, float | None]]


@pytest.fixture(name="cluster")
def _cluster(broker: RunningBroker) -> Iterator[Cluster]:
    """The shared broker; what is stored at the end of a test is cleared."""
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
    """What the cluster holds, by the text of the entity and by key."""
    state: dict[str, dict[str, float | None]] = {}
    for entity, key, value in cluster.describe():
        state.setdefault(entity.text, {})[key] = value
    return state


def settled(cluster: Cluster, expected: State) -> State:
    """What the cluster holds as soon as it is as expected, or after ten seconds."""
    deadline = time.monotonic() + 10
    while (state := described(cluster)) != expected and time.monotonic() < deadline:
        time.sleep(0.01)
    return state


@pytest.mark.parametrize("case", CASES)
def test_the_brokers_rules(case: Any, cluster: Cluster) -> None:
    """What validate says, apply does; validate writes nothing, apply what was not refused."""
    refused, stored = case.get("refused", {}), case.get("stored", {})
    changes = alterations(case["alter"])
    before = case.get("before", {})
    cluster.apply(alterations(before))
    assert settled(cluster, before) == before
    expected = {
        EntityAnswer(change.entity, 42, "INVALID_REQUEST", refused[change.entity.text])
        if change.entity.text in refused
        else EntityAnswer(change.entity, 0, "NONE", None)
        for change in changes
    }

    assert set(cluster.validate(changes)) == expected
    assert described(cluster) == before
    assert set(cluster.apply(changes)) == expected
    assert settled(cluster, stored) == stored


def test_the_longest_names(cluster: Cluster) -> None:
    """32,767 bytes of UTF-8 are carried; one more is refused before anything is sent."""
    longest = {
        f"user={'a' * MAX_NAME_BYTES}": {"producer_byte_rate": 1.0},
        f"client-id={'名' * (MAX_NAME_BYTES // 3)}": {"producer_byte_rate": 2.0},
    }
    assert {answer.code for answer in cluster.apply(alterations(longest))} == {0}
    assert settled(cluster, longest) == longest

    with pytest.raises(InvalidInput) as error:
        cluster.apply(alterations({f"user=a{'é' * 20_000}": {"producer_byte_rate": 1.0}}))
    assert str(error.value) == (
        f"user 'a{'é' * 39}'...: the name takes 40,001 bytes; "
        "Kafka's protocol carries at most 32,767."
    )
    with pytest.raises(InvalidInput, match="not a text that UTF-8 can hold"):
        cluster.apply([Alteration(Entity.of({"user": "\ud800"}), (("producer_byte_rate", 1.0),))])


def test_an_entity_twice_is_our_mistake(cluster: Cluster) -> None:
    """Kafka would apply the first of two and refuse both, so two are never sent."""
    alice = Alteration(Entity.of({"user": "alice"}), (("producer_byte_rate", 1.0),))
    with pytest.raises(ValueError, match="an entity stands twice"):
        cluster.apply([alice, alice])


def test_a_key_twice_is_the_brokers_to_refuse(cluster: Cluster) -> None:
    """A key that one alteration sets and clears fails its entity, in Kafka's own words."""
    alice = Entity.of({"user": "alice"})
    answers = cluster.apply(
        [Alteration(alice, (("producer_byte_rate", 1.0), ("producer_byte_rate", None)))]
    )
    words = "Ignoring duplicate entity ClientQuotaEntity(entries={user=alice})"
    assert answers == (EntityAnswer(alice, 42, "INVALID_REQUEST", words),)


def test_nothing_asks_nothing(cluster: Cluster) -> None:
    """No alterations have no answers; a broker would say the same to whoever lacks permission."""
    assert cluster.validate([]) == ()
    assert cluster.apply([]) == ()


def test_too_much_at_once_is_refused_entity_by_entity(cluster: Cluster) -> None:
    """Over 10,000 changed keys the whole request is refused; each entity has that answer."""
    many = {f"user={number}": {"producer_byte_rate": 1.0} for number in range(10_001)}
    answers = cluster.apply(alterations(many))
    words = "Request parameters do not satisfy the configured policy."
    assert {answer[1:] for answer in answers} == {(44, "POLICY_VIOLATION", words)}
    assert {answer.entity.text for answer in answers} == many.keys()
    assert cluster.describe() == ()


def test_the_collector_is_left_as_it_was(cluster: Cluster) -> None:
    """Decoding pauses the garbage collector, and gives it back as the caller had it."""
    cluster.describe()
    assert gc.isenabled()
    with pytest.raises(ValueError, match="an entity stands twice"):
        cluster.validate([Alteration(Entity.of({"user": "alice"}), ())] * 2)
    assert gc.isenabled()
    gc.disable()
    try:
        cluster.describe()
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_a_throttle_is_waited_for(cluster: Cluster, broker: RunningBroker) -> None:
    """Who may use little of the broker's time waits as long as it is told, and gets its answers."""
    quota = {"client-id=slow": {"request_percentage": 0.001}}
    cluster.apply(alterations(quota))
    assert settled(cluster, quota) == quota
    text = f"bootstrap.servers={broker.bootstrap()}\nclient.id=slow"
    connection = Connection.parse(text, name="demo", source="a test")
    with open_cluster(connection, cluster_id=None) as slow:
        started = time.monotonic()
        assert [described(slow) for _ in range(3)] == [quota] * 3
        assert 1.0 < time.monotonic() - started < 5.0
