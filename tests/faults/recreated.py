"""A cluster that is replaced by another one, at the same address, in the middle of a run."""

import re
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace

from quota_ops.kafka.cluster import open_cluster
from quota_ops.kafka.connection import Connection
from quota_ops.lab.kafka.broker import start_broker
from quota_ops.runs.chain import CHAINS
from quota_ops.store.run.files import PLAN
from tests.broker.stage_runs import After
from tests.broker_config import generate_cluster_id
from tests.faults.scene import Scene
from tests.faults.table import Seen, fault


@contextmanager
def recreated(scene: Scene) -> Iterator[None]:
    """Start an empty cluster with another id instead; at the end, nobody has written to it."""
    machine = scene.machine
    config, (node,) = machine.broker.config, machine.nodes.values()
    data, aside = node.folder / config.data, node.folder / "aside"
    machine.kill()
    data.rename(aside)
    other = replace(config, cluster_id=generate_cluster_id())
    try:
        with start_broker(other, node.folder.parent) as broker:
            assert broker.bootstrap() == scene.lab.bootstrap
            yield
            text = f"bootstrap.servers={broker.bootstrap()}"
            connection = Connection.parse(text, name="other", source="a test")
            with open_cluster(connection, cluster_id=other.cluster_id) as cluster:
                assert list(cluster.describe()) == []
    finally:
        shutil.rmtree(data)
        aside.rename(data)
        machine.start()


def masked(scene: Scene, said: str) -> str:
    """Return a message without the ids of the two clusters."""
    return re.sub(r"(cluster|belongs to) [-\w]{22}", r"\1 ID", scene.masked(said))


@fault("apply", "the cluster recreated with another id between plan and apply", broker="mortal")
def recreated_before_apply(scene: Scene) -> Seen:
    """What was approved for one cluster is not written to another."""
    run = scene.lab.planned()
    digest = run.folder.read_json(PLAN)["digest"]
    with recreated(scene):
        ended = scene.lab.cli("reconcile", "--run", str(run.folder.place), "--approve", digest)
    said = masked(scene, ended.stderr.partition("\n")[0])
    return Seen(scene.holds(), f"exit {ended.returncode}: {said}", scene.next_run())


@fault("apply", "the cluster recreated with another id between two requests", broker="mortal")
def recreated_between_requests(scene: Scene) -> Seen:
    """A new connection is used only after its cluster's id was read."""
    scene.hurry()
    with ExitStack() as stack:
        said = scene.reconcile(progress=After(1, lambda: stack.enter_context(recreated(scene))))
    return Seen(scene.holds(), masked(scene, said), scene.next_run())


@fault("verify", "the cluster recreated with another id between apply and verify", broker="mortal")
def recreated_before_verify(scene: Scene) -> Seen:
    """The empty cluster is not read back as if the run had written nothing there."""
    scene.hurry()
    run = scene.prepare(CHAINS["apply"])
    with recreated(scene):
        said = scene.go_on(run, ("verify", "report"))
        again = scene.lab.cli("verify", "--run", str(run.folder.place))
    assert again.returncode == 3, again.stderr
    return Seen(scene.holds(), masked(scene, said), scene.next_run())
