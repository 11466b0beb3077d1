"""Another writer at the same time, and clocks that go back."""

import subprocess
import sys
import time
from datetime import datetime, tzinfo
from typing import Self

from quota_ops.runs.chain import CHAINS, RESUMED
from quota_ops.runs.run import Run
from quota_ops.stages import apply
from tests.broker.kafka_configs import kafka_configs
from tests.broker.stage_runs import After
from tests.faults.scene import AFTER, BEFORE, KEY, Scene
from tests.faults.table import Seen, fault
from tests.faults.workers import COMMAND
from tests.writing import State, wait_until_shown

THEIRS: State = {"user=u7": {KEY: 7.0}}
"""What a person with kafka-configs sets: a row that is sent with the third request."""
FEW = 3
"""Modules that look at a clock, at the least."""


@fault("apply", "a person changes a row between plan and apply", quick=True)
def altered_after_plan(scene: Scene) -> Seen:
    """Apply reads again, leaves the row alone, and reports it."""
    run = scene.lab.planned()
    scene.lab.put(THEIRS)
    said = scene.go_on(run, RESUMED)
    return Seen(scene.holds(THEIRS), said, scene.next_run())


@fault("apply", "a person changes a row between two requests that are far apart")
def altered_in_pause(scene: Scene) -> Seen:
    """After a pause apply reads again."""
    scene.patch.setattr(apply, "compute_max_age", lambda _took: 0.0)
    said = scene.reconcile(progress=After(1, lambda: scene.lab.put(THEIRS)))
    return Seen(scene.holds(THEIRS), said, scene.next_run())


@fault("apply", "a person changes a row a moment before it is sent", quick=True)
def altered_before_request(scene: Scene) -> Seen:
    """Kafka has no compare-and-set: the approved value wins, and it is verified."""
    said = scene.reconcile(progress=After(1, lambda: scene.lab.put(THEIRS)))
    return Seen(scene.holds(), said, scene.next_run())


@fault("apply", "kafka-configs.sh sets a row between describe and apply", quick=True)
def kafka_configs_before_apply(scene: Scene) -> Seen:
    """Apply reads again, whoever wrote in between; the report has the value it found."""
    run = scene.lab.planned()
    by_kafka_configs(scene)
    said = scene.go_on(run, RESUMED)
    assert "left alone, changed since the plan: producer_byte_rate is now 7 B/s" in reported(run)
    return Seen(scene.holds(THEIRS), said, scene.next_run())


@fault("verify", "kafka-configs.sh sets a row between apply and verify")
def kafka_configs_before_verify(scene: Scene) -> Seen:
    """The broker accepted the row, and stores another value by now: the report has both."""
    scene.hurry()
    run = scene.prepare(CHAINS["apply"])
    by_kafka_configs(scene)
    said = scene.go_on(run, ("verify", "report"))
    assert "7 B/s" in reported(run)
    return Seen(scene.holds(THEIRS), said, scene.next_run())


def by_kafka_configs(scene: Scene) -> None:
    """Set the row with Kafka's own command, and wait until the broker shows it."""
    add = ("--alter", "--add-config", f"{KEY}=7")
    kafka_configs(scene.machine.broker, *add, "--entity-type", "users", "--entity-name", "u7")
    wait_until_shown(scene.lab.cluster, THEIRS)


def reported(run: Run) -> str:
    """Return the lines of a run's report about the row."""
    lines = (run.folder.place / "report.txt").read().decode().splitlines()
    return "\n".join(line for line in lines if "user=u7" in line)


@fault("verify", "a person changes a row that was just written", quick=True)
def altered_after_request(scene: Scene) -> Seen:
    """The report has the value that was read back."""
    scene.hurry()
    said = scene.reconcile(progress=After(4, lambda: scene.lab.put(THEIRS)))
    rest = {one: limits for one, limits in AFTER.items() if one not in THEIRS}
    assert scene.lab.known() == rest
    return Seen(scene.holds(THEIRS), said, scene.next_run())


@fault("apply", "two commands at the same time, at one commit")
def two_at_once(scene: Scene) -> Seen:
    """Each finds what the other wrote; the ledger has it all."""
    both = [
        subprocess.Popen(
            [sys.executable, "-m", "quota_ops", *COMMAND],
            env=scene.lab.environment,
            cwd=scene.lab.root,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for _ in range(2)
    ]
    said = sorted(f"exit {process.returncode}" for process in both if process.communicate()[0])
    return Seen(scene.holds(), f"one {said[0]}, one {said[1]}", scene.next_run())


@fault("apply", "clock of the worker set back by an hour since the last run", quick=True)
def clock_set_back(scene: Scene) -> Seen:
    """The order of runs comes from numbers and Git, not from clocks."""
    scene.lab.desire(BEFORE)
    scene.lab.run("reconcile")
    scene.lab.desire(AFTER)
    clocks = [
        module
        for name, module in sys.modules.items()
        if name.startswith("quota_ops.") and getattr(module, "datetime", None) is datetime
    ]
    assert len(clocks) > FEW
    for module in clocks:
        scene.patch.setattr(module, "datetime", AnHourAgo)
    said = scene.reconcile()
    return Seen(scene.holds(), said, scene.next_run())


class AnHourAgo(datetime):
    """A clock that was set back."""

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> Self:
        """Return the time, an hour earlier."""
        return cls.fromtimestamp(time.time() - 3600, tz)
