"""Workers that are killed by SIGKILL: rows in flight, and what the next run does."""

import os
import signal
from collections.abc import Callable
from functools import partial
from multiprocessing import get_context

from tests.broker.killing import PRELOAD, die_in_file, die_in_request, die_in_silence
from tests.faults.scene import AFTER, Scene
from tests.faults.table import Seen, fault
from tests.lab import EVERY_GUARD
from tests.writing import settle, wait_until_shown

PROCESSES = get_context("forkserver")
PROCESSES.set_forkserver_preload(PRELOAD)
ALLOW = [word for guard in EVERY_GUARD for word in ("--allow", guard)]
COMMAND = ("reconcile", "demo", *ALLOW, "--reason", "a test")
KILLED = "nothing (killed)"


def killed(scene: Scene, doom: Callable[..., None]) -> None:
    """Run reconcile in a process that is killed."""
    process = PROCESSES.Process(target=doom, args=(scene.lab.environment, COMMAND))
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL


def seen(scene: Scene, doom: Callable[..., None]) -> Seen:
    """Kill a run, observe, and run again."""
    killed(scene, doom)
    settle(scene.lab.cluster)
    return Seen(scene.holds(), KILLED, scene.next_run())


@fault("plan", "worker killed while it writes plan.json")
def killed_in_plan(scene: Scene) -> Seen:
    """Before anything is approved there is nothing to lose."""
    return seen(scene, partial(die_in_file, "plan.json"))


@fault("apply", "worker killed while it notes its intent in the ledger")
def killed_in_intent(scene: Scene) -> Seen:
    """A row without a recorded intent is not sent."""
    return seen(scene, partial(die_in_file, "00000002.parquet"))


@fault("apply", "worker killed before its first request", quick=True)
def killed_before_request(scene: Scene) -> Seen:
    """An intent that was never sent is not a change."""
    return seen(scene, partial(die_in_request, 1, before=True))


@fault("apply", "worker killed while its first request is in flight", quick=True)
def killed_during_request(scene: Scene) -> Seen:
    """A request to a silent broker arrives although no process reads its response."""
    pid = scene.machine.nodes[1].pid
    try:
        killed(scene, partial(die_in_silence, pid))
    finally:
        os.kill(pid, signal.SIGCONT)
    arrived = ("user=u2", "user=u3", "user=u4")
    wait_until_shown(scene.lab.cluster, {one: AFTER[one] for one in arrived})
    return Seen(scene.holds(), KILLED, scene.next_run())


@fault("apply", "worker killed after its second request, before it records the outcome", quick=True)
def killed_after_request(scene: Scene) -> Seen:
    """The intent in the ledger makes the values managed in the next run."""
    return seen(scene, partial(die_in_request, 2, before=False))


@fault("apply", "worker killed while it records the outcomes of its last request")
def killed_in_outcomes(scene: Scene) -> Seen:
    """Everything was sent; the missing record does not matter."""
    return seen(scene, partial(die_in_file, "applied.json"))


@fault("verify", "worker killed while it records in the ledger what it read back")
def killed_in_ledger(scene: Scene) -> Seen:
    """The rows were read back but not recorded: the next run reads them back."""
    return seen(scene, partial(die_in_file, "00000003.parquet"))


@fault("report", "worker killed while it writes report.html")
def killed_in_report(scene: Scene) -> Seen:
    """The cluster and the ledger are correct; only the page is missing."""
    return seen(scene, partial(die_in_file, "report.html"))
