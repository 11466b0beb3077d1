"""Two runs of one cluster at once: of two commits, or of two schedulers."""

import json
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import IO, Any, NamedTuple

import pytest
from msgspec.structs import replace

from quota_ops.model.errors import Claimed
from quota_ops.model.plans.ledger_edits import INTENDED
from quota_ops.model.runs.outcome import DONE
from quota_ops.runs.chain import CHAINS, RESUMED, run_stages
from quota_ops.runs.run import Run
from quota_ops.store.run import claim as run_claim
from quota_ops.store.run.files import APPLIED, PLAN
from quota_ops.store.run.folder import RunFolder
from tests.broker.stage_runs import After
from tests.faults.scene import AFTER, BEFORE, CHANGED, KEY, Scene
from tests.faults.table import Seen, fault
from tests.places import on_disk
from tests.writing import State, settle

OLDER: State = {**BEFORE, **{f"user=u{number}": {KEY: 3.0} for number in range(6, 10)}}
"""What Git said one commit ago; it takes two requests."""


def at(commit: str, scene: Scene, state: State) -> Run:
    """Return a new run at a commit, with this desired state."""
    scene.lab.desire(state)
    path = scene.lab.store.new_run("demo")
    return scene.lab.resume(RunFolder.start(path, cluster="demo", commit=commit))


def newer(scene: Scene) -> None:
    """Run a whole reconcile at the later commit."""
    run_stages(at("newer", scene, AFTER), CHAINS["reconcile"])


@fault("apply", "another run applies a newer commit while a plan waits", quick=True)
def passed_while_it_waits(scene: Scene) -> Seen:
    """An approval that comes too late undoes nothing."""
    waiting = at("older", scene, OLDER)
    run_stages(waiting, CHAINS["plan"])
    newer(scene)
    digest = waiting.folder.read_json(PLAN)["digest"]
    said = scene.go_on(scene.lab.resume(waiting.folder, approve=digest), RESUMED)
    return Seen(scene.holds(), said, scene.next_run())


@fault("apply", "a later run finds nothing to change while a plan waits", quick=True)
def confirmed_while_it_waits(scene: Scene) -> Seen:
    """The later run wrote nothing, and is not overwritten either."""
    scene.lab.desire(OLDER)
    waiting = scene.prepare(CHAINS["plan"])
    scene.lab.desire(BEFORE)
    later = scene.reconcile()
    digest = waiting.folder.read_json(PLAN)["digest"]
    said = scene.go_on(scene.lab.resume(waiting.folder, approve=digest), RESUMED)
    scene.lab.desire(AFTER)
    return Seen(scene.holds(), f"the older: {said}; the later: {later}", scene.next_run())


@fault("apply", "another run applies a newer commit while a worker sleeps between two requests")
def passed_while_it_sleeps(scene: Scene) -> Seen:
    """Before each request apply reads the ledger, and sends nothing more."""
    scene.hurry()
    slept = at("older", scene, OLDER)
    slept = scene.lab.resume(slept.folder, progress=After(1, partial(newer, scene)))
    said = scene.go_on(slept, CHAINS["reconcile"])
    return Seen(scene.holds(), said, scene.next_run())


MIDDLE: State = {**BEFORE, **{f"user=u{number}": {KEY: 4.0} for number in range(2, 5)}}
"""What the cluster holds before two runs; the older one sets three limits back to BEFORE."""


@dataclass
class Delayed:
    """A cluster whose request of a number arrives only after something else has happened."""

    cluster: Any
    number: int
    act: Callable[[], None]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.cluster, name)

    def apply(self, alterations: Any) -> Any:
        """Send after the other event."""
        self.number -= 1
        if self.number == 0:
            self.act()
        return self.cluster.apply(alterations)


def delayed(scene: Scene, number: int) -> Seen:
    """Play an older run, one request of which arrives after a whole newer run; it stops at once."""
    scene.hurry(verifying=600.0)
    scene.lab.put(MIDDLE)
    scene.lab.note(MIDDLE)
    older = at("older", scene, BEFORE)
    slow: Any = Delayed(scene.lab.cluster, number, partial(newer, scene))
    said = scene.go_on(replace(older, connect=lambda: slow), CHAINS["reconcile"])
    settle(scene.lab.cluster)
    return Seen(scene.holds(), f"the older: {said}; the newer: exit 0", scene.next_run())


@fault("apply", "a second person approves a run while it is applied", quick=True)
def approved_twice(scene: Scene) -> Seen:
    """One process at a time applies a run: the other writes nothing, and records nothing."""
    ends: list[str] = []
    run = scene.lab.planned()
    digest = run.folder.read_json(PLAN)["digest"]

    def approve() -> None:
        ended = scene.lab.cli("apply", "--run", str(run.folder.place), "--approve", digest)
        assert (
            f"another process has been applying run demo/{on_disk(run.folder).name}" in ended.stderr
        )
        ends.append(f"exit {ended.returncode}: another process has applied it")

    first = scene.go_on(replace(run, progress=After(1, approve)), RESUMED)
    return Seen(scene.holds(), f"the first: {first}; the second: {ends[0]}", scene.next_run())


@fault("apply", "a worker of another host paused between two requests, and its run taken over")
def paused_on_another_host(scene: Scene) -> Seen:
    """The run is taken over after a minute without a renewal; the worker that wakes up stops."""
    scene.patch.setattr(run_claim, "LEASE", 0.0)  # the paused worker looks for a later claim
    run = scene.lab.planned()
    digest = run.folder.read_json(PLAN)["digest"]
    ends: list[str] = []

    def take_over() -> None:
        claim = on_disk(run.folder) / "claim-0001.json"
        holder = json.loads(claim.read_text("utf-8")) | {"process": ["boot", "pid", 1, "0"]}
        claim.write_text(json.dumps(holder), "utf-8")
        paused = time.time() - 61
        os.utime(claim, (paused, paused))
        ended = scene.lab.cli("apply", "--run", str(run.folder.place), "--approve", digest)
        ends.append(f"exit {ended.returncode}")

    with pytest.raises(Claimed) as raised:
        run_stages(replace(run, progress=After(1, take_over)), RESUMED)
    error = raised.value
    taken = re.escape(f"on host {socket.gethostname()} has been applying run demo/")
    assert re.match(rf"this process was paused, and process \d+ {taken}", error.message)
    said = f"exit {error.exit_code}: this process was paused, and another one has applied the run"
    run_stages(scene.lab.resume(run.folder), ("verify", "report"))
    assert {outcome.status for outcome in run.folder.outcomes(APPLIED)} <= DONE
    assert not scene.lab.known(INTENDED)
    return Seen(scene.holds(), f"the first: {said}; the second: {ends[0]}", scene.next_run())


@fault("apply", "a slow older run, its first request delayed until a newer run has ended")
def first_request_delayed(scene: Scene) -> Seen:
    """The request in flight arrives; the run reports it, and the next repairs it."""
    return delayed(scene, 1)


@fault("apply", "a slow older run, its last request delayed until a newer run has ended")
def last_request_delayed(scene: Scene) -> Seen:
    """Nothing is left to send, and verify still finds the newer run: it is not a success."""
    return delayed(scene, 2)


@fault("apply", "a newer run is between two requests when an older one resumes", quick=True)
def newer_run_applies(scene: Scene) -> Seen:
    """The intents of the newer run are in the ledger, so the older one sends nothing."""
    scene.hurry()
    scene.lab.put(MIDDLE)
    scene.lab.note(MIDDLE)
    older = at("older", scene, BEFORE)
    run_stages(older, CHAINS["plan"])
    digest = older.folder.read_json(PLAN)["digest"]
    ends: list[str] = []

    def go_on() -> None:
        ends.append(scene.go_on(scene.lab.resume(older.folder, approve=digest), RESUMED))

    run = replace(at("newer", scene, AFTER), progress=After(1, go_on))
    ends.append(scene.go_on(run, CHAINS["reconcile"]))
    said = f"the older: {ends[0]}; the newer: {ends[1]}"
    return Seen(scene.holds(), said, scene.next_run())


@fault("apply", "two DAG runs at the same time, each in its own Airflow")
def two_dag_runs(scene: Scene) -> Seen:
    """Each finds what the other wrote; together they report every change."""
    with ExitStack() as stack:
        both = [stack.enter_context(dag_process(scene)) for _ in range(2)]
        for process in both:
            assert "ready\n" in process.stdout
        for process in both:
            process.stdin.write("go\n")
            process.stdin.flush()
        ends = [process.stdout.read().split()[-1] for process in both]
    folders = [RunFolder(path) for path in scene.lab.store.runs("demo")]
    began, ended = (
        [(on_disk(folder) / name).stat().st_mtime for folder in folders]
        for name in ("run.json", "report.html")
    )
    assert max(began) < min(ended)
    outcomes = [outcome for folder in folders for outcome in folder.outcomes(APPLIED)]
    assert {outcome.entity for outcome in outcomes} == set(CHANGED)
    assert {outcome.status for outcome in outcomes} <= DONE
    return Seen(scene.holds(), f"one {ends[0]}, one {ends[1]}", scene.next_run())


class Process(NamedTuple):
    """The pipes of a process."""

    stdin: IO[str]
    stdout: IO[str]


@contextmanager
def dag_process(scene: Scene) -> Iterator[Process]:
    """Return a process that is ready to run the DAG, and runs it on a command."""
    kept = {name: one for name, one in scene.lab.environment.items() if name != "PYTHONWARNINGS"}
    command = [sys.executable, "-m", "tests.dag.process", str(scene.lab.root)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, env=kept, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdin
        assert process.stdout
        yield Process(process.stdin, process.stdout)
