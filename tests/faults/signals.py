"""Signals between a write and its response: a cancelled job, a closed terminal."""

import signal

from click.testing import CliRunner

from quota_ops.cli import main
from quota_ops.kafka.cluster import Cluster
from quota_ops.model.runs.outcome import Status
from quota_ops.store.run.files import APPLIED
from quota_ops.store.run.folder import RunFolder
from tests.broker.test_interrupted import signal_after
from tests.faults.scene import Scene
from tests.faults.table import Seen, fault
from tests.faults.workers import COMMAND
from tests.writing import settle


def ended(scene: Scene, number: int) -> Seen:
    """End a run by a signal when its second request has a response that is not read yet."""
    send, handler = Cluster.apply, signal.signal(number, signal.SIG_DFL)
    signal_after(Cluster, "apply", scene.patch, at=2, number=number)
    try:
        found = CliRunner().invoke(main, COMMAND, env=scene.lab.environment)
    finally:
        signal.signal(number, handler)
    scene.patch.setattr(Cluster, "apply", send)
    settle(scene.lab.cluster)
    assert found.exit_code == 128 + number
    said = f"exit {found.exit_code}: {scene.masked(found.stderr.strip())}"
    [run] = map(RunFolder, scene.lab.store.runs("demo"))
    assert [outcome.status for outcome in run.outcomes(APPLIED)].count(Status.UNKNOWN) == 2
    holds, then = scene.holds(), scene.next_run()
    assert [outcome.status for outcome in run.outcomes(APPLIED)].count(Status.ACCEPTED) == 4
    return Seen(holds, said, f"{then}; settled the first run's unknown rows")


@fault("apply", "SIGTERM between a write and its response, as from a canceled job", quick=True)
def terminated(scene: Scene) -> Seen:
    """The run reports the rows as unknown, and the next one settles them."""
    return ended(scene, signal.SIGTERM)


@fault("apply", "SIGHUP between a write and its response, as from a closed terminal")
def hung_up(scene: Scene) -> Seen:
    """The same as for SIGTERM."""
    return ended(scene, signal.SIGHUP)
