"""A process that is stopped for longer than its claim lasts, and resumes after a second one."""

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from functools import partial

from quota_ops.model.quotas.difference import Kind
from quota_ops.model.runs.outcome import DONE
from quota_ops.runs.chain import CHAINS
from quota_ops.store.run import claim
from quota_ops.store.run.files import APPLIED, CLAIM, PLAN
from tests.broker.freezing import wait_until_stopped
from tests.broker.killing import stop_in_request
from tests.faults.runs_at_once import at
from tests.faults.scene import AFTER, BEFORE, Scene
from tests.faults.table import Seen, fault
from tests.faults.workers import PROCESSES
from tests.places import on_disk
from tests.writing import settle

OTHER_HOST = ("unshare", "--pid", "--uts", "--fork", "--mount-proc")
"""Runs a command that counts processes apart, as in another container. Only root may."""


@fault("apply", "a worker stopped a moment before a request, its run taken over from another host")
def stopped_and_taken_over(scene: Scene) -> Seen:
    """The request that had passed every check is sent after all, and it is the only one."""
    run = scene.lab.planned()
    digest = run.folder.read_json(PLAN)["digest"]
    resume = ("reconcile", "--run", str(run.folder.place), "--approve", digest)
    stopped = PROCESSES.Process(
        target=partial(stop_in_request, 2), args=(scene.lab.environment, resume)
    )
    stopped.start()
    assert stopped.pid
    wait_until_stopped(stopped.pid)
    command = [*OTHER_HOST, sys.executable, "-m", "quota_ops", *resume]
    early = subprocess.run(command, env=scene.lab.environment, capture_output=True, check=False)
    assert early.returncode == 1
    time.sleep(claim.LEASE / 2 + 1)  # until the first looks at its claim again
    received = time.time() - claim.LEASE  # as if it had waited longer
    os.utime(on_disk(run.folder.place / CLAIM.of(1)), (received, received))
    second = subprocess.run(command, env=scene.lab.environment, capture_output=True, check=False)
    assert scene.lab.stored() == scene.lab.known() == AFTER
    assert {outcome.status for outcome in run.folder.outcomes(APPLIED)} <= DONE
    newer = scene.go_on(at("newer", scene, BEFORE), CHAINS["reconcile"])
    os.kill(stopped.pid, signal.SIGCONT)
    stopped.join()
    settle(scene.lab.cluster)
    holds = scene.holds()
    folder = scene.lab.run("reconcile")
    found = Counter(row.kind for row in folder.differences())
    late, returned = found[Kind.LATE_WRITE], found[Kind.RETURNED]
    assert scene.lab.stored() == scene.lab.known() == BEFORE
    then = f"repaired {late} late write, cleared {returned} returned row; all as Git declares"
    said = f"the first: exit {stopped.exitcode}; the second: exit {second.returncode}"
    return Seen(holds, f"{said}; a newer run: {newer}", then)
