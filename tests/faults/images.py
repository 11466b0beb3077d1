"""Brokers that respond from an old image of the metadata: with error 0, like any other."""

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from quota_ops.kafka.cluster import Cluster
from quota_ops.kafka.connection import Connection
from quota_ops.kafka.messages import build_describe_request
from quota_ops.kafka.preflight import preflight
from quota_ops.store.run.folder import RunFolder
from tests.faults.scene import BEFORE, KEY, Scene
from tests.faults.table import Seen, fault
from tests.writing import State

T = TypeVar("T")

OLD: State = {"user=u0": {KEY: 5.0}, "user=u1": {KEY: 5.0}}
"""Two limits of ours as they were before the last run."""


class Late(Cluster):
    """A cluster of which one broker repeats an earlier response several times."""

    broker = 1
    times = 0
    answer: tuple[Any, ...] = ()

    def remember(self) -> None:
        """Keep what is stored now as the response that is repeated later."""
        self.answer = super()._describe(build_describe_request(), tuple, None, None)

    def _describe(
        self,
        request: Any,
        read: Callable[[Iterable[Any]], T],
        broker: int | None,
        timeout: float | None,
    ) -> T:
        if (broker or self.last_responder) == self.broker and self.times:
            self.times -= 1
            return read(self.answer)
        return super()._describe(request, read, broker, timeout)


def late(scene: Scene, times: int) -> Late:
    """Return a cluster whose first broker lags behind the ledger."""
    address = f"bootstrap.servers={scene.lab.bootstrap}"
    connection = Connection.parse(address, name="demo", source="a test")
    cluster = Late(connection, preflight(connection, None), 30.0)
    scene.lab.put(OLD)
    cluster.remember()
    scene.lab.put(BEFORE)
    cluster.times = times
    return cluster


def drift(folder: RunFolder) -> list[str]:
    """Return the entities that a run reports as changed outside Git."""
    return [row.entity for row in folder.differences() if row.is_drift]


@fault("describe", "the only broker responds with old metadata, once", quick=True)
def old_image_once(scene: Scene) -> Seen:
    """Apparent drift is described again before it is reported."""
    cluster = late(scene, 1)
    run = scene.prepare(("check", "describe", "diff"), connect=lambda: cluster)
    cluster.close()
    assert drift(run.folder) == []
    return Seen(scene.holds(), "no drift", scene.next_run())


@fault("describe", "a row drifts, and every response shows it", quick=True)
def drifted(scene: Scene) -> Seen:
    """Real drift is reported after the second response."""
    scene.lab.put(OLD)
    run = scene.prepare(("check", "describe", "diff"))
    assert drift(run.folder) == [*OLD]
    return Seen(scene.holds(OLD), "2 rows drifted", scene.next_run())


@fault("describe", "one broker of three responds with old metadata", broker="three")
def old_image(scene: Scene) -> Seen:
    """Two responses against one; the lagging broker is named."""
    cluster = late(scene, 100)
    run = scene.prepare(("check", "describe", "diff", "report"), connect=lambda: cluster)
    cluster.close()
    assert drift(run.folder) == []
    return Seen(scene.holds(), scene.warned(run.folder), scene.next_run())
