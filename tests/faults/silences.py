"""Brokers that stop responding: frozen, killed, stopped and restarted, in each stage."""

from functools import partial

from quota_ops.model.plans.ledger_edits import INTENDED
from quota_ops.runs.chain import CHAINS, READ_ONLY, RESUMED
from quota_ops.store.ledger import ledger
from quota_ops.store.run.files import APPLIED
from tests.broker.stage_runs import After
from tests.faults.scene import AFTER, BEFORE, Scene
from tests.faults.table import Seen, fault


@fault("describe", "broker frozen", timeout=1.0)
def frozen_in_describe(scene: Scene) -> Seen:
    """A cluster that cannot be described is not a cluster without quotas."""
    scene.machine.freeze()
    said = scene.reconcile()
    scene.machine.thaw()
    return Seen(scene.holds(), said, scene.next_run())


@fault("describe", "broker killed", broker="mortal", timeout=1.0)
def killed_in_describe(scene: Scene) -> Seen:
    """As before, with the port closed."""
    scene.machine.kill()
    said = scene.reconcile()
    scene.machine.start()
    return Seen(scene.holds(), said, scene.next_run())


@fault("validate", "broker frozen", timeout=1.0)
def frozen_in_validate(scene: Scene) -> Seen:
    """Rows that the broker has not validated are not written."""
    run = scene.prepare(READ_ONLY[:4])
    scene.machine.freeze()
    said = scene.go_on(run, ("validate", *RESUMED))
    scene.machine.thaw()
    return Seen(scene.holds(), said, scene.next_run())


@fault("apply", "broker frozen before the first request", quick=True, timeout=1.0)
def frozen_before_apply(scene: Scene) -> Seen:
    """Rows that certainly could not be sent are not recorded as managed."""
    run = scene.lab.planned()
    scene.machine.freeze()
    said = scene.go_on(run, RESUMED)
    assert not run.folder.has(APPLIED)
    scene.machine.thaw()
    assert scene.lab.known(INTENDED) == {}
    return Seen(scene.holds(), said, scene.next_run())


@fault("apply", "broker frozen for two seconds between two requests", quick=True, timeout=1.0)
def frozen_for_a_while(scene: Scene) -> Seen:
    """A broker that is silent for longer than a timeout is queried again, and the run continues."""
    freeze = partial(scene.machine.freeze, seconds=2.0)
    said = scene.reconcile(progress=After(1, freeze))
    rows = ledger.read(scene.lab.records).rows
    late = {row.entity: {row.key: row.value} for row in rows if row.state == INTENDED}
    assert late  # what got no answer may be written once more
    assert late.items() <= AFTER.items()
    return Seen(scene.holds(), said, scene.next_run())


@fault(
    "apply", "broker frozen between two requests until the run has ended", quick=True, timeout=1.0
)
def frozen_to_the_end(scene: Scene) -> Seen:
    """Nothing is sent after an unknown result; the write arrives after the run."""
    scene.hurry()
    said = scene.reconcile(progress=After(1, scene.machine.freeze))
    assert scene.lab.known() == BEFORE
    assert len(scene.lab.known(INTENDED)) == 4
    scene.machine.thaw()
    scene.lab.wait_for({**BEFORE, **scene.lab.known(INTENDED)})
    return Seen(scene.holds(), said, scene.next_run())


@fault("apply", "broker killed between two requests", broker="mortal", timeout=2.0)
def killed_between(scene: Scene) -> Seen:
    """Acknowledged writes survive the broker; the rest is not sent."""
    scene.hurry()
    said = scene.reconcile(progress=After(1, scene.machine.kill))
    scene.machine.start()
    return Seen(scene.holds(), said, scene.next_run())


@fault("apply", "broker restarted between two requests", broker="mortal", timeout=10.0)
def restarted_between(scene: Scene) -> Seen:
    """After a restart the broker is written to by a new connection."""
    said = scene.reconcile(progress=After(2, scene.machine.restart))
    return Seen(scene.holds(), said, scene.next_run())


@fault("verify", "broker frozen", quick=True, timeout=1.0)
def frozen_in_verify(scene: Scene) -> Seen:
    """A write that could not be read back is not called verified."""
    scene.hurry()
    run = scene.prepare(CHAINS["apply"])
    scene.machine.freeze()
    said = scene.go_on(run, ("verify", "report"))
    scene.machine.thaw()
    assert scene.lab.known() == BEFORE
    return Seen(scene.holds(), said, scene.next_run())


@fault("verify", "broker killed, its disk intact", broker="mortal", timeout=2.0)
def killed_in_verify(scene: Scene) -> Seen:
    """An acknowledged write is there when the broker is."""
    scene.hurry()
    run = scene.prepare(CHAINS["apply"])
    scene.machine.kill()
    said = scene.go_on(run, ("verify", "report"))
    scene.machine.start()
    return Seen(scene.holds(), said, scene.next_run())
