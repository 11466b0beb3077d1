"""Lost messages: a read is retried, and a write is sent at most once."""

import threading
import time
from collections.abc import Iterator
from functools import partial

import pytest
from msgspec.structs import replace

from quota_ops.kafka.client.description import Broker, ClusterDescription
from quota_ops.kafka.cluster import Cluster, open_cluster
from quota_ops.kafka.connection import Connection
from quota_ops.lab.kafka.broker import RunningBroker
from quota_ops.model.clusters.cluster_facts import Metadata
from quota_ops.model.errors import NoResponse, QuotaOpsError, Unreachable, WrongCluster
from quota_ops.model.quotas.alteration import Alteration
from quota_ops.model.quotas.entity import Entity
from quota_ops.model.quotas.rows import StoredQuota
from quota_ops.model.runs.outcome import EntityResponse
from quota_ops.runs.chain import CHAINS, run_stages
from tests.broker.conftest import Listeners
from tests.broker.freezing import frozen
from tests.broker.stage_runs import TEN, After
from tests.broker.wire import Wire
from tests.faults.machine import Machine
from tests.lab import Lab
from tests.looking import seen_in_time
from tests.writing import empty

ALICE = Entity.of({"user": "alice"})
KEY = "producer_byte_rate"
LIMIT = (Alteration(ALICE, ((KEY, 1.0),)),)
CLEAR = (Alteration(ALICE, ((KEY, None),)),)
LIMITED = (StoredQuota(ALICE, KEY, 1.0),)
ACCEPTED = (EntityResponse(ALICE, 0, "NONE", None),)


@pytest.fixture(name="wire")
def _wire(broker: RunningBroker) -> Iterator[Wire]:
    wire = Wire(broker.bootstrap())
    yield wire
    wire.remove()


@pytest.fixture(name="cluster")
def _cluster(wire: Wire, broker: RunningBroker) -> Iterator[Cluster]:
    """Return the shared broker at the end of a wire, with a connection that has been used."""
    description = ClusterDescription(broker.config.cluster_id, (Broker(1, "127.0.0.1", wire.port),))
    cluster = Cluster(demo(f"127.0.0.1:{wire.port}"), description, timeout=2.0)
    assert cluster.describe() == ()
    yield cluster
    cluster.close()
    with open_cluster(demo(broker.bootstrap()), cluster_id=None) as direct:
        empty(direct)


def demo(servers: str) -> Connection:
    """Return a connection without login."""
    return Connection.parse(f"bootstrap.servers={servers}", name="demo", source="demo.properties")


def wait_for(cluster: Cluster, stored: tuple[StoredQuota, ...]) -> None:
    """Describe until the cluster stores the expected values, a minute at most."""
    assert seen_in_time(cluster.describe, stored) == stored


def test_an_idle_connection_that_was_closed_is_opened_again(cluster: Cluster, wire: Wire) -> None:
    """A broker may close an idle connection; the next call notices before it sends anything."""
    for alter in (cluster.validate, cluster.apply, cluster.apply):
        wire.cut()
        time.sleep(0.05)
        assert alter(LIMIT) == ACCEPTED
    wait_for(cluster, LIMITED)


def test_an_address_that_leads_to_another_cluster(
    cluster: Cluster, wire: Wire, broker: RunningBroker, listeners: Listeners
) -> None:
    """Each new connection is checked by cluster id: nothing else is sent to another cluster."""
    address = listeners.addresses["PLAINTEXT"]
    wire.lead_to(address)
    for call in (cluster.describe, partial(cluster.validate, LIMIT), partial(cluster.apply, LIMIT)):
        wire.cut()
        time.sleep(0.05)
        with pytest.raises(WrongCluster) as error:
            call()
        assert error.value.message == (
            f"connection demo: expected the cluster {broker.config.cluster_id}, but broker 1 at "
            f"127.0.0.1:{wire.port} now belongs to {listeners.cluster_id}."
        )
    assert cluster.start_metadata_query()() == Metadata()
    with open_cluster(demo(address), cluster_id=None) as other:
        assert other.describe() == ()

    wire.lead_to(broker.bootstrap())
    assert cluster.apply(LIMIT) == ACCEPTED
    wait_for(cluster, LIMITED)


@pytest.mark.usefixtures("small_batches")
@pytest.mark.parametrize("what", ["request", "answer"])
def test_a_run_whose_address_leads_to_another_cluster(
    what: str, lab: Lab, listeners: Listeners
) -> None:
    """Rows in flight stay unknown, the rest is not sent, and no other cluster verifies it."""
    lab.desire(TEN)
    wire = Wire(lab.bootstrap)
    description = ClusterDescription(lab.cluster.cluster_id, (Broker(1, "127.0.0.1", wire.port),))
    cluster = Cluster(demo(f"127.0.0.1:{wire.port}"), description, timeout=2.0)

    def move() -> None:
        wire.once, wire.cut_at = True, what
        wire.lead_to(listeners.addresses["PLAINTEXT"])

    run = replace(lab.start(progress=After(1, move)), connect=lambda: cluster)
    with pytest.raises(QuotaOpsError) as error:
        run_stages(run, CHAINS["reconcile"])
    wire.remove()

    assert error.value.exit_code in {1, 3}
    assert f"now belongs to {listeners.cluster_id}" in error.value.message
    assert "the write was sent, and its outcome cannot be found out" in error.value.message
    assert "Nothing was sent" not in str(error.value)
    with open_cluster(demo(listeners.addresses["PLAINTEXT"]), cluster_id=None) as other:
        assert other.describe() == ()
    assert lab.known() == {}
    lab.run("reconcile")
    assert lab.stored() == TEN


@pytest.mark.usefixtures("small_batches")
def test_a_run_whose_broker_goes_away(lab: Lab) -> None:
    """A run that wrote before the cluster became unreachable does not say that nothing was sent."""
    lab.desire(TEN)
    wire = Wire(lab.bootstrap)
    description = ClusterDescription(lab.cluster.cluster_id, (Broker(1, "127.0.0.1", wire.port),))
    cluster = Cluster(demo(f"127.0.0.1:{wire.port}"), description, timeout=2.0)

    run = replace(lab.start(progress=After(1, wire.remove)), connect=lambda: cluster)
    with pytest.raises(Unreachable) as error:
        run_stages(run, CHAINS["reconcile"])

    assert error.value.message == (
        f"2 of 10 entities done: connection demo: broker 1 at 127.0.0.1:{wire.port} cannot be "
        "reached: 111 ECONNREFUSED."
    )
    lab.run("reconcile")


@pytest.mark.parametrize("what", ["request", "answer"])
def test_a_write_without_an_answer_is_unknown(what: str, cluster: Cluster, wire: Wire) -> None:
    """A lost request cannot be determined from a lost response, so it is not sent again."""
    wire.cut_at = what
    with pytest.raises(NoResponse) as error:
        cluster.apply(LIMIT)
    assert str(error.value) == (
        f"connection demo: broker 1 at 127.0.0.1:{wire.port} did not respond: socket disconnected. "
        "The request was sent, but it is unknown whether the cluster applied it.\n"
        "  See what the cluster stores: quota-ops describe CLUSTER"
    )
    wire.cut_at = None
    wait_for(cluster, LIMITED if what == "answer" else ())


def test_reading_is_tried_again(cluster: Cluster, wire: Wire) -> None:
    """A describe or validate retries a broken connection, and succeeds once it works again."""
    for call, answer in ((cluster.describe, ()), (partial(cluster.validate, LIMIT), ACCEPTED)):
        wire.cut_at = "answer"
        threading.Timer(0.3, setattr, (wire, "cut_at", None)).start()
        assert call() == answer


def test_reading_ends_in_time(cluster: Cluster, wire: Wire) -> None:
    """A call to an unreachable broker fails within the timeout; a write fails at once, unsent."""
    wire.remove()
    words = (
        f"connection demo: broker 1 at 127.0.0.1:{wire.port} cannot be reached: 111 ECONNREFUSED."
    )
    for call, least, most in (
        (partial(cluster.apply, LIMIT), 0.0, 2.0),
        (partial(cluster.describe, 1), 0.0, 2.0),
        (cluster.describe, 1.2, 6.0),
    ):
        started = time.monotonic()
        with pytest.raises(Unreachable) as error:
            call()
        assert least <= time.monotonic() - started < most
        assert error.value.message == f"{words} Nothing was sent."


def test_a_frozen_broker_leaves_a_write_unknown(cluster: Cluster, broker: RunningBroker) -> None:
    """A frozen broker may still execute a request that it received: here it does, later."""
    with frozen(broker.nodes[0]), pytest.raises(NoResponse) as error:
        cluster.apply(LIMIT)
    assert "did not respond: timed out after 2 s" in error.value.message
    wait_for(cluster, LIMITED)


def test_a_broker_that_froze_before_is_unreachable(broker: RunningBroker) -> None:
    """If a connection is opened without a response, nothing was sent: not unknown."""
    with open_cluster(demo(broker.bootstrap()), cluster_id=None, timeout=1.0) as cluster:
        with frozen(broker.nodes[0]):
            for call in (
                partial(cluster.apply, LIMIT),
                cluster.describe,
                partial(cluster.describe, 1),
            ):
                with pytest.raises(Unreachable) as error:
                    call()
                assert str(error.value) == (
                    f"connection demo: broker 1 at {broker.bootstrap()} cannot be reached: "
                    "timed out after 1 s. Nothing was sent.\n"
                    "  The address is the one that the broker advertises. If only the bootstrap "
                    "address is reachable, for example over a private link, set verify: "
                    "bootstrap in cluster.yaml."
                )
        wait_for(cluster, ())


def test_three_brokers(three: Machine) -> None:
    """Each broker is queried by its id, and one that does not respond is named.

    Without a quorum the last broker still describes, but neither validates nor applies.
    """
    servers = three.broker.bootstrap()
    with open_cluster(demo(servers), cluster_id=None, timeout=1.5) as cluster:
        assert [broker.id for broker in cluster.brokers] == [1, 2, 3]
        assert cluster.apply(LIMIT) == ACCEPTED
        for number in (1, 2, 3):
            assert seen_in_time(partial(cluster.describe, number), LIMITED) == LIMITED
        with pytest.raises(Unreachable) as error:
            cluster.describe(4)
        assert (
            str(error.value)
            == "connection demo: there is no broker 4; the cluster's brokers are 1, 2, 3."
        )

        leader = three.leader  # for some seconds it would still validate by itself
        first, second, last = sorted(three.nodes.values(), key=lambda node: node.id != leader)
        with frozen(first, second):
            with pytest.raises(Unreachable) as error:
                cluster.describe(leader)
            assert error.value.message == (
                f"connection demo: broker {leader} at {first.address()} did not respond: "
                "timed out after 1.5 s. Nothing was changed."
            )
            assert cluster.describe(last.id) == LIMITED
            assert cluster.describe() == LIMITED
            facts = {
                one.id: (one.version, one.io_threads) for one in cluster.read_facts(1.0).brokers
            }
            silent = {first.id: (None, None), second.id: (None, None)}
            assert facts == {**silent, last.id: ("4.3", 8)}
            with pytest.raises(Unreachable):
                cluster.validate(LIMIT)
            with pytest.raises(NoResponse):
                cluster.apply(CLEAR)
    with open_cluster(demo(servers), cluster_id=None) as cluster:
        empty(cluster)
