"""Writes that arrive after their run has ended, and disks that bring back old values."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from quota_ops.kafka.cluster import Cluster, open_cluster
from quota_ops.kafka.connection import Connection
from quota_ops.model.plans.policy import VerifyPolicy
from quota_ops.runs.chain import CHAINS
from quota_ops.sql import text
from quota_ops.stages import apply
from quota_ops.stages.apply import intent
from quota_ops.store.run.folder import RunFolder
from tests.faults.runs_at_once import at
from tests.faults.scene import AFTER, KEY, Scene
from tests.faults.table import Seen, fault
from tests.places import on_disk
from tests.writing import State

NEWER: State = {
    **{f"user=u{number}": {KEY: 1.0} for number in (0, 1, 5)},
    **{f"user=u{number}": {KEY: 4.0} for number in (3, 4, 6)},
    **{f"user=u{number}": {KEY: 3.0} for number in (7, 8, 9)},
}
"""What a newer commit says: three limits move further, u5 stays after all, and u2 leaves Git."""
LATE = ("user=u3", "user=u4", "user=u5", "user=u6")


@contextmanager
def through(scene: Scene, node: int) -> Iterator[Cluster]:
    """Return the cluster by the address of one broker, as over a private link."""
    address = scene.machine.nodes[node].address()
    connection = Connection.parse(f"bootstrap.servers={address}", name="demo", source="a test")
    asks = VerifyPolicy.BOOTSTRAP
    with open_cluster(connection, cluster_id=None, verify=asks, timeout=2.0) as cluster:
        yield cluster


def kinds(folder: RunFolder) -> dict[str, list[str]]:
    """Return the entities of a plan by the kind of their difference."""
    found: dict[str, list[str]] = {}
    for row in folder.differences():
        found.setdefault(row.kind.value, []).append(row.entity)
    return found


def freeze_after_intent(scene: Scene, node: int) -> None:
    """Freeze a broker as soon as the next run has recorded what it is about to send."""

    def intend_and_freeze(*given: object) -> None:
        intent.record_intents(*given)  # type: ignore[arg-type]
        scene.machine.freeze(node)

    scene.patch.setattr(apply, "record_intents", intend_and_freeze)


@fault(
    "apply",
    "first broker of three frozen after the intent is noted; it wakes after a newer commit's run",
    broker="three",
    timeout=2.0,
)
def woken_after_a_newer_run(scene: Scene) -> Seen:
    """A late write is named, repaired if Git declares the row, and needs approval if not."""
    scene.hurry(verifying=5.0)
    scene.patch.setattr(text, "batches_text", partial(text.batches_text, max_keys=100))
    first, second = (node for node in scene.machine.nodes if node != scene.machine.leader)
    with through(scene, first) as cluster:
        older = at("older", scene, AFTER)
        freeze_after_intent(scene, first)
        said = [scene.go_on(scene.lab.resume(older.folder, connect=lambda: cluster), RECONCILE)]
    scene.patch.setattr(apply, "record_intents", intent.record_intents)
    with through(scene, second) as cluster:
        newer = at("newer", scene, NEWER)
        said += [scene.go_on(scene.lab.resume(newer.folder, connect=lambda: cluster), RECONCILE)]
        assert cluster.describe_values() == {
            (one, KEY): limits[KEY] for one, limits in NEWER.items()
        }
    scene.machine.thaw()
    scene.lab.wait_for(AFTER)
    then = named_and_repaired(scene, on_disk(older.folder).name)
    return Seen("the newer run undone, and u2 is back", "; then ".join(said), then)


RECONCILE = CHAINS["reconcile"]


def named_and_repaired(scene: Scene, run: str) -> str:
    """Verify and reconcile at the newer commit; assert that all of it is named."""
    _, error = scene.lab.refused("verify")
    assert (error.exit_code, "Late writes of earlier runs: user=u3" in str(error)) == (1, True)
    asks = at("newer", scene, NEWER)
    said = scene.go_on(scene.lab.resume(asks.folder, allow={}), RECONCILE)
    assert said.startswith("exit 1: guards block this plan: unlimited: user=u2")
    assert said.endswith("that run NAME wrote late (4 accepted, 1 waiting)")
    assert scene.lab.stored() == {**NEWER, "user=u2": AFTER["user=u2"]}
    assert kinds(asks.folder) == {"late_write": list(LATE), "returned": ["user=u2"]}
    assert {row.run for row in asks.folder.differences()} == {run}
    report = (on_disk(asks.folder) / "report.txt").read_text("utf-8")
    assert report.count(f"(late write of run {run})") == len(LATE) + 1
    allowed = at("newer", scene, NEWER)
    overridden = {"unlimited": "a test", "returned": "a test"}
    scene.go_on(scene.lab.resume(allowed.folder, allow=overridden), RECONCILE)
    assert scene.lab.stored() == scene.lab.known() == NEWER
    assert scene.reconcile() == "exit 0"
    return "repaired 4 late writes, reported 1 returned row; all as Git declares after an override"


@fault(
    "describe",
    "a broker's data folder restored from before a run cleared a row",
    broker="mortal",
    timeout=10.0,
)
def data_folder_restored(scene: Scene) -> Seen:
    """A cleared row is named when it is back, and written only after an approval."""
    (node,) = scene.machine.nodes.values()
    data, copy = node.folder / scene.machine.broker.config.data, scene.lab.root / "copy"
    node.stop()
    shutil.copytree(data, copy)
    scene.machine.start()
    cleared = scene.lab.run("reconcile")
    assert scene.lab.stored() == AFTER
    scene.machine.nodes[node.id].stop()
    shutil.rmtree(data)
    shutil.copytree(copy, data)
    scene.machine.start()
    holds = scene.holds()
    asks = scene.lab.start(allow={})
    said = scene.go_on(asks, RECONCILE).replace(on_disk(cleared).name, "N")
    assert kinds(asks.folder)["returned"] == ["user=u5"]
    return Seen(holds, said, scene.next_run())
