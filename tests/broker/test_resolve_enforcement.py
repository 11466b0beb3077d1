"""Real producers and consumers are throttled to the limit that the resolver gives.

The broker counts over two windows of a second instead of eleven, so that the opening burst is over
within two seconds; from then on a client's rate is its limit within a few per cent.
"""

from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from quota_ops.desired.read import read_cluster
from quota_ops.kafka.cluster import Cluster
from quota_ops.lab.kafka.broker import RunningBroker
from quota_ops.precedence.resolution import Limits, Resolution
from tests.broker.states import emptied_cluster
from tests.broker.working_clients import CONSUME, PRODUCE, Client, measure
from tests.writing import State, write

TOLERANCE = 0.2
"""Every limit is half or twice its neighbour's, so none is taken for another."""


@pytest.fixture(name="cluster")
def _cluster(quick: RunningBroker) -> Iterator[Cluster]:
    with emptied_cluster(quick) as cluster:
        yield cluster


def check(
    quick: RunningBroker, cluster: Cluster, limits: State, clients: tuple[Client, ...]
) -> None:
    """Run clients side by side; those that share a limit get it together.

    A client without a limit gets more than the limit that it would otherwise have.
    """
    write(cluster, limits)
    stored = Limits(cluster.describe())
    found = [
        stored.resolve(client.key, user=client.user, client_id=client.client_id or None)
        for client in clients
    ]
    assert [one.applied and one.applied.level.name for one in found] == [
        client.level for client in clients
    ]

    with ThreadPoolExecutor(len(clients)) as threads:
        rates = list(threads.map(lambda one: measure(quick, one), clients))

    together: dict[tuple[str, ...], float] = defaultdict(float)
    for resolution, rate in zip(found, rates, strict=True):
        together[_sharers(resolution)] += rate
    limited = {_sharers(one): one.applied.value for one in found if one.applied is not None}
    assert {sharers: together[sharers] for sharers in limited} == pytest.approx(
        limited, rel=TOLERANCE
    )
    for resolution, rate in zip(found, rates, strict=True):
        for escaped in resolution.escaped:
            assert escaped.value is not None
            assert rate > (1 + 2 * TOLERANCE) * escaped.value


def _sharers(resolution: Resolution) -> tuple[str, ...]:
    return (resolution.key, *resolution.shared_by.values())


def test_levels_with_a_user(quick: RunningBroker, cluster: Cluster) -> None:
    """With all eight levels stored, clients get the limits of levels 1 to 5, shared as resolved."""
    limits = {
        "client-id=app,user=alice": {PRODUCE: 40_000.0},
        "client-id=<default>,user=bob": {PRODUCE: 80_000.0},
        "user=alice": {CONSUME: 160_000.0},
        "user=carol": {PRODUCE: 160_000.0},
        "client-id=etl,user=<default>": {PRODUCE: 320_000.0},
        "client-id=<default>,user=<default>": {PRODUCE: 640_000.0},
        "user=<default>": {PRODUCE: 20_000.0, CONSUME: 80_000.0},
        "client-id=app": {PRODUCE: 10_000.0, CONSUME: 20_000.0},
        "client-id=<default>": {PRODUCE: 5_000.0, CONSUME: 10_000.0},
    }
    clients = (
        Client(PRODUCE, "alice", "app", "user+client-id"),
        Client(CONSUME, "alice", "app", "user"),
        Client(PRODUCE, "bob", "app", "user+client-id-default"),
        Client(PRODUCE, "bob", "etl", "user+client-id-default"),
        Client(PRODUCE, "carol", "app", "user"),
        Client(PRODUCE, "carol", "etl", "user"),
        Client(PRODUCE, "dave", "etl", "user-default+client-id"),
        Client(PRODUCE, "erin", "other", "user-default+client-id-default"),
        Client(CONSUME, "erin", "app", "user-default"),
    )
    check(quick, cluster, limits, clients)


def test_levels_without_a_user(quick: RunningBroker, cluster: Cluster) -> None:
    """Levels 6 to 8 apply if no earlier level is stored; levels 7 and 8 skip an empty client id."""
    limits = {
        "client-id=other,user=alice": {PRODUCE: 1_000.0},
        "user=<default>": {CONSUME: 160_000.0},
        "client-id=app": {PRODUCE: 160_000.0, CONSUME: 10_000.0},
        "client-id=<default>": {PRODUCE: 40_000.0},
    }
    clients = (
        Client(PRODUCE, "frank", "app", "client-id"),
        Client(PRODUCE, "grace", "app", "client-id"),
        Client(PRODUCE, "heidi", "other", "client-id-default"),
        Client(CONSUME, "heidi", "app", "user-default"),
        Client(PRODUCE, "heidi", "", None),
    )
    check(quick, cluster, limits, clients)


GROUP = f"""\
owner: team
groups:
  - name: jobs
    members: [{{user: alice}}, {{user: bob, weight: 3}}]
    budget: {{{PRODUCE}: 160000}}
"""


def test_members_of_a_group(quick: RunningBroker, cluster: Cluster, tmp_path: Path) -> None:
    """A producer of a group is throttled to its own share, whatever the others leave."""
    (tmp_path / "cluster.yaml").write_text("cluster_id: a\nconnection: b\n", "utf-8")
    (tmp_path / "team.yaml").write_text(GROUP, "utf-8")
    shares = {row.entity: {row.key: row.value} for row in read_cluster(tmp_path).rows}

    assert shares == {"user=alice": {PRODUCE: 40_000.0}, "user=bob": {PRODUCE: 120_000.0}}
    check(quick, cluster, shares, (Client(PRODUCE, "alice", "app", "user"),))
    check(
        quick,
        cluster,
        shares,
        (Client(PRODUCE, "alice", "app", "user"), Client(PRODUCE, "bob", "app", "user")),
    )
