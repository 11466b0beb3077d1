"""Requests, mutations and connections are throttled by the limit that the resolver gives."""

import socket
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from quota_ops.kafka.cluster import Cluster
from quota_ops.lab.kafka.broker import RunningBroker
from quota_ops.precedence.resolution import Limits
from tests.broker.states import emptied_cluster
from tests.broker.throttled_clients import WINDOWS, connection_rate, is_throttled, mutation_rate
from tests.lab import open_lab
from tests.writing import State, write

REQUESTS, MUTATIONS = "request_percentage", "controller_mutation_rate"
CONNECTIONS = "connection_creation_rate"
TIGHT, WIDE = 0.001, 1000.0
"""Percent of a thread: any request costs more than the one, none as much as the other."""
TOLERANCE = 0.3
"""Every limit is half or twice its neighbour's, so none is taken for another."""
SECONDS = 5.0
AT_ONCE = WINDOWS / SECONDS
"""The part by which who comes at once, or at a bad moment, is off the rate; half is the next."""
Clients = Mapping[tuple[str, str], list[str | None]]
"""Users and client ids, with the levels at which their requests and their mutations are limited."""


@pytest.fixture(name="cluster")
def _cluster(quick: RunningBroker) -> Iterator[Cluster]:
    with emptied_cluster(quick) as cluster:
        yield cluster


def store(cluster: Cluster, limits: State) -> Limits:
    """Set limits on a cluster, for brokers and for the resolver."""
    write(cluster, limits)
    return Limits(cluster.describe())


def check(quick: RunningBroker, limits: Limits, clients: Clients) -> None:
    """Check that each client's requests and mutations are throttled by its two levels."""
    for who, levels in clients.items():
        requests, mutations = (
            limits.resolve(key, user=who[0], client_id=who[1]).applied
            for key in (REQUESTS, MUTATIONS)
        )
        assert [rung and rung.level.name for rung in (requests, mutations)] == levels, who
        rate = mutations and pytest.approx(mutations.value, rel=TOLERANCE)
        assert mutation_rate(quick, *who) == rate, who
        assert is_throttled(quick, *who) == (requests is not None and requests.value == TIGHT), who


def test_levels_with_a_user(quick: RunningBroker, cluster: Cluster) -> None:
    """Levels 1 to 6 apply to requests and mutations, each key at a level of its own."""
    limits = store(
        cluster,
        {
            "client-id=app,user=alice": {REQUESTS: TIGHT, MUTATIONS: 1},
            "user=alice": {REQUESTS: WIDE},
            "client-id=<default>,user=bob": {REQUESTS: WIDE, MUTATIONS: 2},
            "user=bob": {REQUESTS: TIGHT, MUTATIONS: 8},
            "user=carol": {REQUESTS: TIGHT, MUTATIONS: 1},
            "client-id=etl,user=<default>": {REQUESTS: WIDE, MUTATIONS: 8},
            "client-id=<default>,user=<default>": {MUTATIONS: 4},
            "user=<default>": {REQUESTS: TIGHT, MUTATIONS: 2},
            "client-id=other": {REQUESTS: WIDE},
        },
    )
    clients: Clients = {
        ("alice", "app"): ["user+client-id", "user+client-id"],
        ("alice", "other"): ["user", "user-default+client-id-default"],
        ("bob", "app"): ["user+client-id-default", "user+client-id-default"],
        ("carol", "app"): ["user", "user"],
        ("dave", "etl"): ["user-default+client-id", "user-default+client-id"],
        ("erin", "other"): ["user-default", "user-default+client-id-default"],
    }
    check(quick, limits, clients)


def test_levels_without_a_user(quick: RunningBroker, cluster: Cluster) -> None:
    """Levels 7 and 8 apply if nothing is stored for users, and exempt no client id."""
    limits = store(
        cluster,
        {
            "client-id=app": {REQUESTS: WIDE, MUTATIONS: 8},
            "client-id=<default>": {REQUESTS: TIGHT, MUTATIONS: 2},
        },
    )
    clients: Clients = {
        ("frank", "app"): ["client-id", "client-id"],
        ("grace", "other"): ["client-id-default", "client-id-default"],
        ("heidi", ""): [None, None],
    }
    check(quick, limits, clients)


@pytest.fixture(name="_many_addresses", scope="module")
def _own_addresses() -> None:
    """Skip where the machine does not have all of 127.0.0.0/8, as macOS does not."""
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.2", 0))
        except OSError:
            pytest.skip("needs addresses beside 127.0.0.1 on the loopback interface")


@pytest.mark.usefixtures("_many_addresses")
def test_addresses(quick: RunningBroker, cluster: Cluster) -> None:
    """An address has its own limit, in any spelling, or else the default's."""
    stored = {
        "ip=127.0.0.2": 5,
        "ip=127.3": 10,
        "ip=0127.0.0.4": 5,
        "ip=::ffff:127.0.0.5": 10,
        "ip=<default>": 20,
    }
    limits = store(cluster, {entity: {CONNECTIONS: rate} for entity, rate in stored.items()})
    addresses = [f"127.0.0.{number}" for number in range(2, 7)]

    found = [limits.resolve_address(CONNECTIONS, ip=address).applied for address in addresses]

    named = [5, 10, 5, 10, 20]
    assert [rung and rung.value for rung in found] == named
    assert rates(quick, addresses) == pytest.approx(named, rel=AT_ONCE)


@pytest.mark.usefixtures("_many_addresses")
def test_spellings_of_one_address(quick: RunningBroker, cluster: Cluster, tmp_path: Path) -> None:
    """The spelling changed last applies; clearing one leaves the default, until one is set again.

    That is why a resolution warns of spellings and names, and how to remove them. A run sets one
    again that brokers have lost.
    """
    stored = {"127.0.0.2": 5, "127.0.0.3": 5, "127.0.0.4": 5, "localhost": 5, "<default>": 20}
    state = {f"ip={name}": {CONNECTIONS: float(rate)} for name, rate in stored.items()}
    store(cluster, state)
    store(cluster, state | {f"ip=127.{last}": {CONNECTIONS: 10.0} for last in (2, 3, 4)})
    write(cluster, {"ip=127.3": {CONNECTIONS: None}, "ip=127.0.0.4": {CONNECTIONS: None}})
    write(cluster, {"ip=127.4": {CONNECTIONS: None}})
    write(cluster, {"ip=127.0.0.4": {CONNECTIONS: 5.0}})
    with open_lab(quick, tmp_path) as lab:
        lab.desire({"ip=127.0.0.5": {CONNECTIONS: 5.0}})
        for command, spelling in (("reconcile", 10.0), ("report", None), ("reconcile", None)):
            lab.run(command)
            write(cluster, {"ip=127.5": {CONNECTIONS: spelling}})

        measured = rates(quick, [f"127.0.0.{last}" for last in (2, 3, 4, 5, 1)])

    assert measured == pytest.approx([10, 20, 5, 5, 5], rel=AT_ONCE)


def rates(quick: RunningBroker, addresses: list[str]) -> list[float]:
    """Return the connections per second that each address gets, all at once."""
    with ThreadPoolExecutor(len(addresses)) as threads:
        return list(threads.map(lambda one: connection_rate(quick, one, SECONDS), addresses))
