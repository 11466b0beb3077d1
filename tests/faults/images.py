"""Brokers that answer from an old image of the metadata: with error 0, like any other."""

from quota_ops.kafka.cluster import Cluster
from quota_ops.kafka.connection import Connection
from quota_ops.kafka.preflight import preflight
from quota_ops.model.entity import Entity
from quota_ops.model.rows import StoredQuota
from quota_ops.run_folder import RunFolder
from quota_ops.stages.held import held_by
from tests.faults.scene import BEFORE, KEY, Scene
from tests.faults.table import Seen, fault
from tests.lab import State

OLD: State = {"user=u0": {KEY: 5.0}, "user=u1": {KEY: 5.0}}
"""Two limits of ours as they were before the last run."""


class Late(Cluster):
    """A cluster of which one broker gives an earlier answer once more: so often."""

    broker = 1
    times = 1
    answer: tuple[StoredQuota, ...] = ()

    def describe(
        self, broker: int | None = None, timeout: float | None = None
    ) -> tuple[StoredQuota, ...]:
        """Describe, or give the earlier answer."""
        return self.answer if self._is_late(broker) else super().describe(broker, timeout)

    def held(
        self,
        broker: int | None = None,
        timeout: float | None = None,
        entity: Entity | None = None,
    ) -> dict[tuple[str, str], float]:
        """The same by entity and key."""
        if self._is_late(broker):
            return dict(held_by(row for row in self.answer if entity in {None, row.entity}))
        return super().held(broker, timeout, entity)

    def _is_late(self, broker: int | None) -> bool:
        late = (broker or self.last_asked) == self.broker and self.times > 0
        self.times -= late
        return late


def late(scene: Scene, times: int) -> Late:
    """A cluster whose first broker is behind what the ledger knows."""
    address = f"bootstrap.servers={scene.lab.bootstrap}"
    connection = Connection.parse(address, name="demo", source="a test")
    cluster = Late(connection, preflight(connection, None), 30.0)
    scene.lab.put(OLD)
    cluster.answer = scene.lab.cluster.describe()
    scene.lab.put(BEFORE)
    cluster.times = times
    return cluster


def drift(folder: RunFolder) -> list[str]:
    """The entities that a run calls moved behind Git's back."""
    return [row.entity for row in folder.differences() if row.is_drift]


@fault("describe", "the only broker answers from an old image, once", quick=True)
def old_image_once(scene: Scene) -> Seen:
    """What seems to have drifted is described again before anyone is told."""
    cluster = late(scene, 1)
    run = scene.prepare(("check", "describe", "diff"), connect=lambda: cluster)
    cluster.close()
    assert drift(run.folder) == []
    return Seen(scene.holds(), "no drift", scene.next_run())


@fault("describe", "a row drifts, and every answer says so", quick=True)
def drifted(scene: Scene) -> Seen:
    """Real drift is told after the second answer."""
    scene.lab.put(OLD)
    run = scene.prepare(("check", "describe", "diff"))
    assert drift(run.folder) == [*OLD]
    return Seen(scene.holds(OLD), "2 rows drifted", scene.next_run())


@fault("describe", "one broker of three answers from an old image", broker="three")
def old_image(scene: Scene) -> Seen:
    """Two answers against one; the one is named."""
    cluster = late(scene, 100)
    run = scene.prepare(("check", "describe", "diff", "report"), connect=lambda: cluster)
    cluster.close()
    assert drift(run.folder) == []
    return Seen(scene.holds(), scene.warned(run.folder), scene.next_run())
