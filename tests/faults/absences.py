"""Brokers that belong to the cluster and that no client is routed to: fenced, stopped, retired."""

import time
from contextlib import ExitStack

from quota_ops.kafka.cluster import Cluster, open_cluster
from quota_ops.kafka.connection import Connection
from quota_ops.runs.chain import CHAINS
from quota_ops.store.ledger.ledger import read
from tests.faults.machine import FENCING
from tests.faults.scene import AFTER, Scene
from tests.faults.table import Seen, fault

RETIRED = [{"id": 3, "reason": "scaled down"}]


class Onlooker:
    """Connect as a new command does, without routes to fenced brokers."""

    def __init__(self, scene: Scene, stack: ExitStack) -> None:
        self._scene, self._stack = scene, stack

    def __call__(self) -> Cluster:
        """Return a cluster with the brokers that it names now."""
        servers = f"bootstrap.servers={self._scene.machine.broker.bootstrap()}"
        connection = Connection.parse(servers, name="demo", source="a test")
        return self._stack.enter_context(open_cluster(connection, cluster_id=None, timeout=5.0))


def reconciled(scene: Scene) -> str:
    """Return the result of a new run, and what its report shows of the brokers."""
    with ExitStack() as stack:
        run = scene.start(connect=Onlooker(scene, stack))
        said = scene.go_on(run, CHAINS["reconcile"])
        return f"{said}. {scene.warned(run.folder)}".strip()


@fault("verify", "one broker of three frozen, and fenced before the run", broker="three")
def fenced_before(scene: Scene) -> Seen:
    """No run calls itself verified, and what the others report of themselves is kept."""
    frozen = next(node for node in scene.machine.nodes if node != scene.machine.leader)
    scene.machine.freeze(frozen)
    facts = scene.lab.cluster.start_facts_query()()
    assert (facts.late, facts.late_users) == ((frozen,), False)
    assert [broker.id for broker in facts.brokers if broker.version is None] == [frozen]
    time.sleep(FENCING)
    said = reconciled(scene)
    holds = scene.holds()
    noted = read(scene.lab.records).notes.brokers
    assert (noted.ids, [*noted.absent]) == ((1, 2, 3), [frozen])
    scene.machine.thaw()
    return Seen(holds, said, scene.next_run())


@fault("verify", "one broker of three stopped by an administrator", broker="three")
def stopped(scene: Scene) -> Seen:
    """It is missed by each run until it is back; the first that missed it is named."""
    node = [one for one in scene.machine.nodes if one != scene.machine.leader][-1]
    scene.machine.nodes[node].stop()
    reconciled(scene)
    first = read(scene.lab.records).notes.brokers.absent[node]
    said = reconciled(scene).replace(first, "RUN")
    holds = scene.holds()
    scene.machine.start()
    scene.next_run()
    assert read(scene.lab.records).notes.brokers.absent == {}
    return Seen(holds, said, "nothing left to do")


@fault("verify", "one broker of three stopped and unregistered", broker="three")
def unregistered(scene: Scene) -> Seen:
    """A cluster that was scaled down is complete again without it."""
    scene.machine.nodes[3].stop()
    scene.machine.unregister(3)
    said = reconciled(scene)
    assert read(scene.lab.records).notes.brokers.ids == (1, 2)
    holds = scene.holds()
    scene.machine.start()
    return Seen(holds, said, scene.next_run())


@fault("verify", "one broker of three stopped, and retired in cluster.yaml", broker="three")
def retired(scene: Scene) -> Seen:
    """A registered broker that will not return is an exception that the report shows."""
    scene.lab.desire(AFTER, retired_brokers=RETIRED)
    scene.machine.nodes[3].stop()
    said = reconciled(scene)
    holds = scene.holds()
    scene.machine.start()
    return Seen(holds, said, scene.next_run())
