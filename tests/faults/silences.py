"""Brokers that fall silent: frozen, killed, stopped and started again, in each stage."""

from functools import partial

from quota_ops.model.ledger_edits import INTENDED
from quota_ops.model.memory import SUPERSEDED
from quota_ops.runs.chain import CHAINS, READ_ONLY, RESUMED
from quota_ops.store.run_folder import APPLIED
from tests.broker.stage_runs import After
from tests.faults.scene import AFTER, BEFORE, Scene
from tests.faults.table import Seen, fault


@fault("describe", "broker frozen", timeout=1.0)
def frozen_in_describe(scene: Scene) -> Seen:
    """A cluster that cannot be looked at is no cluster without quotas."""
    scene.machine.freeze()
    said = scene.reconcile()
    scene.machine.thaw()
    return Seen(scene.holds(), said, scene.next_run())


@fault("describe", "broker killed", broker="mortal", timeout=1.0)
def killed_in_describe(scene: Scene) -> Seen:
    """As before, and the port is closed."""
    scene.machine.kill()
    said = scene.reconcile()
    scene.machine.start()
    return Seen(scene.holds(), said, scene.next_run())


@fault("validate", "broker frozen", timeout=1.0)
def frozen_in_validate(scene: Scene) -> Seen:
    """What the broker has not spoken about is not written."""
    run = scene.prepare(READ_ONLY[:4])
    scene.machine.freeze()
    said = scene.go_on(run, ("validate", *RESUMED))
    scene.machine.thaw()
    return Seen(scene.holds(), said, scene.next_run())


@fault("apply", "broker frozen before the first request", quick=True, timeout=1.0)
def frozen_before_apply(scene: Scene) -> Seen:
    """What could surely not be sent is not noted as ours."""
    run = scene.lab.planned()
    scene.machine.freeze()
    said = scene.go_on(run, RESUMED)
    assert not run.folder.has(APPLIED)
    scene.machine.thaw()
    assert scene.lab.known(INTENDED) == {}
    return Seen(scene.holds(), said, scene.next_run())


@fault("apply", "broker frozen for two seconds between two requests", quick=True, timeout=1.0)
def frozen_for_a_while(scene: Scene) -> Seen:
    """A broker that is silent for longer than a call waits is asked again, and the run goes on."""
    freeze = partial(scene.machine.freeze, seconds=2.0)
    said = scene.reconcile(progress=After(1, freeze))
    late = scene.lab.known(SUPERSEDED)  # what got no answer may be written once more
    assert late
    assert late.items() <= AFTER.items()
    return Seen(scene.holds(), said, scene.next_run())


@fault(
    "apply", "broker frozen between two requests until the run has ended", quick=True, timeout=1.0
)
def frozen_to_the_end(scene: Scene) -> Seen:
    """Nothing is sent after an unknown answer; the write arrives when nobody waits any more."""
    scene.hurry()
    said = scene.reconcile(progress=After(1, scene.machine.freeze))
    assert scene.lab.known() == BEFORE
    assert len(scene.lab.known(INTENDED)) == 4
    scene.machine.thaw()
    scene.lab.wait_for({**BEFORE, **scene.lab.known(INTENDED)})
    return Seen(scene.holds(), said, scene.next_run())


@fault("apply", "broker killed between two requests", broker="mortal", timeout=2.0)
def killed_between(scene: Scene) -> Seen:
    """What was acknowledged survives the broker; the rest is not sent."""
    scene.hurry()
    said = scene.reconcile(progress=After(1, scene.machine.kill))
    scene.machine.start()
    return Seen(scene.holds(), said, scene.next_run())


@fault("apply", "broker restarted between two requests", broker="mortal", timeout=10.0)
def restarted_between(scene: Scene) -> Seen:
    """Who hangs up and is back is written to by a new connection."""
    said = scene.reconcile(progress=After(2, scene.machine.restart))
    return Seen(scene.holds(), said, scene.next_run())


@fault("verify", "broker frozen", quick=True, timeout=1.0)
def frozen_in_verify(scene: Scene) -> Seen:
    """What could not be read back is not called verified."""
    scene.hurry()
    run = scene.prepare(CHAINS["apply"])
    scene.machine.freeze()
    said = scene.go_on(run, ("verify", "report"))
    scene.machine.thaw()
    assert scene.lab.known() == BEFORE
    return Seen(scene.holds(), said, scene.next_run())


@fault("verify", "broker killed, its disk intact", broker="mortal", timeout=2.0)
def killed_in_verify(scene: Scene) -> Seen:
    """What was acknowledged is there when the broker is."""
    scene.hurry()
    run = scene.prepare(CHAINS["apply"])
    scene.machine.kill()
    said = scene.go_on(run, ("verify", "report"))
    scene.machine.start()
    return Seen(scene.holds(), said, scene.next_run())
