"""Three brokers that are controllers too, and lose some of them."""

import time

from quota_ops.runs.chain import CHAINS
from tests.broker.stage_runs import After
from tests.faults.machine import FENCING
from tests.faults.scene import Scene
from tests.faults.table import Seen, fault


@fault("apply", "active controller killed between two requests", broker="three", timeout=10.0)
def leader_killed(scene: Scene) -> Seen:
    """Another one leads before a call gives up; verify names the broker that is gone."""
    scene.hurry(verifying=5.0)
    leader = scene.machine.leader
    said = scene.reconcile(progress=After(1, lambda: scene.machine.kill(leader)))
    holds = scene.holds()
    scene.machine.start()
    return Seen(holds, said, scene.next_run())


@fault("apply", "two of three controllers killed between two requests", broker="three", timeout=3.0)
def quorum_lost(scene: Scene) -> Seen:
    """The last broker still describes, and nothing is committed: unknown, until they are back."""
    scene.hurry()
    gone = [node for node in scene.machine.nodes if node != scene.machine.leader][:1]
    gone.append(scene.machine.leader)
    said = scene.reconcile(progress=After(1, lambda: scene.machine.kill(*gone)))
    holds = scene.holds()
    scene.machine.start()
    scene.next_run()
    return Seen(holds, said, "sent what had not arrived; all as Git declares")


@fault("describe", "two of three controllers frozen", broker="three", timeout=3.0)
def no_controller(scene: Scene) -> Seen:
    """What the last broker describes does not count as current."""
    leader = scene.machine.leader
    scene.machine.freeze(*[node for node in (1, 2, 3) if node != leader])
    time.sleep(4.0)  # the leader resigns when it hears from nobody
    run = scene.prepare(("check", "describe", "diff", "report"))
    said = scene.warned(run.folder)
    scene.machine.thaw()
    return Seen(scene.holds(), said, scene.next_run())


@fault("verify", "one broker of three frozen until it is fenced", broker="three", timeout=2.0)
def one_fenced(scene: Scene) -> Seen:
    """A broker that is fenced and lagging is named; what the others store enters the ledger."""
    scene.hurry()
    frozen = [node for node in scene.machine.nodes if node != scene.machine.leader][-1]
    run = scene.prepare(CHAINS["apply"])
    scene.machine.freeze(frozen)
    time.sleep(FENCING)
    said = scene.go_on(run, ("verify", "report"))
    words = scene.warned(run.folder)
    holds = scene.holds()
    scene.machine.thaw()
    return Seen(holds, f"{said}. {words}", scene.next_run())
