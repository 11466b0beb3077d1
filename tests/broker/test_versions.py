"""Every Kafka of the sandbox: what it accepts and rejects, the whole loop, and permissions."""

from collections.abc import Iterator
from contextlib import suppress
from math import nan
from pathlib import Path
from typing import Any

import pytest

from quota_ops.kafka.cluster import Cluster, open_cluster
from quota_ops.kafka.connection import Connection
from quota_ops.lab.kafka.broker import RunningBroker, start_broker
from quota_ops.lab.kafka.jars import DEFAULT_VERSION, pinned_versions
from quota_ops.model.errors import LoginFailed, NotAuthorized
from quota_ops.model.quotas.alteration import Alteration
from quota_ops.model.quotas.entity import Entity
from quota_ops.model.runs.outcome import EntityResponse, Status
from tests.broker.rights import SCRAM, connection_of, properties_of, rights, scram_logins, secured
from tests.broker.stage_runs import outcomes
from tests.broker.states import described, emptied_cluster, settled
from tests.lab import open_lab
from tests.writing import State, alterations, write
from tests.yaml_cases import load_yaml

CASES = {
    f"{path.stem}: {case['case']}": case
    for path in sorted((Path(__file__).parents[1] / "cases" / "broker").glob("*.yaml"))
    for case in load_yaml(path.read_text("utf-8"))
}
ALWAYS = [name for name, case in CASES.items() if "versions" not in case]
RATES = {"producer_byte_rate": 1_048_576.0, "consumer_byte_rate": 2_000_000.0}
OTHERS = {"request_percentage": 12.5, "controller_mutation_rate": 0.5}
SHAPES: State = {
    "user=alice": RATES | OTHERS,
    "user=<default>": RATES,
    "client-id=app": OTHERS,
    "client-id=<default>": RATES,
    "client-id=app,user=alice": RATES,
    "client-id=<default>,user=alice": OTHERS,
    "client-id=app,user=<default>": RATES,
    "client-id=<default>,user=<default>": OTHERS,
    "ip=10.20.0.7": {"connection_creation_rate": 50.0},
    "ip=<default>": {"connection_creation_rate": 900.0},
}
"""All ten shapes and all five keys."""


@pytest.fixture(name="kafka", scope="module", params=pinned_versions())
def _kafka(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningBroker]:
    """Start a broker of each version, with an authorizer and logins."""
    if request.param == DEFAULT_VERSION:
        yield request.getfixturevalue("secured_broker")
        return
    home = tmp_path_factory.mktemp(f"kafka-{request.param}")
    with start_broker(secured(request.param), home) as running:
        yield running


@pytest.fixture(name="cluster")
def _cluster(kafka: RunningBroker) -> Iterator[Cluster]:
    """Return its cluster, empty at the end of a test."""
    with emptied_cluster(kafka) as cluster:
        yield cluster


@pytest.mark.parametrize("name", ALWAYS)
def test_what_all_take_and_refuse(name: str, cluster: Cluster) -> None:
    """A case that names no versions applies to each."""
    play(CASES[name], cluster)


def test_what_not_all_take(kafka: RunningBroker, cluster: Cluster) -> None:
    """Infinity is stored for two keys until Kafka 4.4 rejects it; so is any case of a version."""
    own = [case for case in CASES.values() if kafka.config.version in case.get("versions", ())]
    assert own
    for case in own:
        play(case, cluster)


def play(case: Any, cluster: Cluster) -> None:
    """Check that apply agrees with validate.

    Validate writes nothing, apply what was not rejected.
    """
    refused, stored = case.get("refused", {}), case.get("stored", {})
    changes = alterations(case["alter"])
    before = case.get("before", {})
    write(cluster, before)
    expected = {
        EntityResponse(change.entity, 42, "INVALID_REQUEST", refused[change.entity.text])
        if change.entity.text in refused
        else EntityResponse(change.entity, 0, "NONE", None)
        for change in changes
    }

    assert set(cluster.validate(changes)) == expected
    assert described(cluster) == before
    assert set(cluster.apply(changes)) == expected
    assert settled(cluster, stored) == stored


def test_a_key_twice_is_the_brokers_to_refuse(cluster: Cluster) -> None:
    """A key that one alteration sets and clears fails its entity, with Kafka's own text."""
    alice = Entity.of({"user": "alice"})
    answers = cluster.apply(
        [Alteration(alice, (("producer_byte_rate", 1.0), ("producer_byte_rate", None)))]
    )
    words = "Ignoring duplicate entity ClientQuotaEntity(entries={user=alice})"
    assert answers == (EntityResponse(alice, 42, "INVALID_REQUEST", words),)


def test_too_much_at_once_is_refused_entity_by_entity(cluster: Cluster) -> None:
    """Over 10,000 changed keys the whole request is rejected; each entity has that response."""
    many = {f"user={number}": {"producer_byte_rate": 1.0} for number in range(10_001)}
    answers = cluster.apply(alterations(many))
    words = "Request parameters do not satisfy the configured policy."
    assert {answer[1:] for answer in answers} == {(44, "POLICY_VIOLATION", words)}
    assert {answer.entity.text for answer in answers} == many.keys()
    assert cluster.describe() == ()


def test_what_is_no_number(kafka: RunningBroker, cluster: Cluster) -> None:
    """NaN is stored for every key, and described as NaN, until Kafka 4.4 rejects it."""
    numbers = {f"user={key}": {key: nan} for key in (*RATES, *OTHERS)}
    numbers["ip=10.0.0.1"] = {"connection_creation_rate": nan}

    answers = cluster.apply(alterations(numbers))

    if kafka.config.version == "4.4.0":
        words = {
            f"Quota {key} must be a finite number" for keys in numbers.values() for key in keys
        }
        assert {(answer.code, answer.message) for answer in answers} == {(42, one) for one in words}
        assert described(cluster) == {}
    else:
        assert {answer.code for answer in answers} == {0}
        assert settled(cluster, numbers) == numbers


def test_a_broker_tells_its_release(kafka: RunningBroker, cluster: Cluster) -> None:
    """The facts of a broker have the release line of its version."""
    (broker,) = cluster.read_facts(10.0).brokers
    assert broker.version == kafka.config.version.rpartition(".")[0]


def test_the_whole_loop(kafka: RunningBroker, tmp_path: Path) -> None:
    """Runs set, change and clear all shapes and keys, verified by the broker."""
    foreign: State = {"user=foreign": {"producer_byte_rate": 7.0}}
    changed = {entity: limits for entity, limits in SHAPES.items() if "ip" not in entity}
    changed |= {
        "user=alice": {"request_percentage": 25.0},
        "ip=2001:db8::7": SHAPES["ip=<default>"],
    }
    with open_lab(kafka, tmp_path) as lab:
        lab.put(foreign)
        for desired in (SHAPES, changed, {}):
            lab.desire(desired)
            folder = lab.run("reconcile")
            assert set(outcomes(folder).values()) == {Status.ACCEPTED}
            assert lab.stored() == {**desired, **foreign}
            assert lab.known() == desired
            assert [row.entity for row in lab.run("plan").differences()] == list(foreign)


def test_scram_logins_and_their_rights(kafka: RunningBroker) -> None:
    """A SCRAM user may do what its permissions allow; a wrong password is named as the cause."""
    with rights(kafka), scram_logins(kafka):
        assert may(connection_of(kafka, "writer", SCRAM)) == ["describe", "alter"]
        assert may(connection_of(kafka, "reader", SCRAM)) == ["describe"]
        assert may(connection_of(kafka, "none", SCRAM)) == []
        wrong = properties_of(kafka, "reader", SCRAM).replace("-secret", "-guess")
        with pytest.raises(LoginFailed, match="rejected the credentials of user 'reader'"):
            may(Connection.parse(wrong, name="demo", source="a test"))


def may(connection: Connection) -> list[str]:
    """Return what a SCRAM user is authorized to do."""
    clear = alterations({"user=alice": {"producer_byte_rate": None}})
    allowed = []
    with open_cluster(connection, cluster_id=None) as cluster:
        with suppress(NotAuthorized):
            cluster.describe()
            allowed.append("describe")
        with suppress(NotAuthorized):
            cluster.validate(clear)
            allowed.append("alter")
    return allowed
