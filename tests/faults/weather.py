"""Random faults: Git moves, a random fault strikes, and a run ends or is killed."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from random import Random

import pytest

from quota_ops.model.plans.ledger_edits import INTENDED
from tests.broker.killing import die_in_file, die_in_request
from tests.broker.stage_runs import After
from tests.faults.filling import fill_at
from tests.faults.network import wired
from tests.faults.scene import KEY, Scene
from tests.faults.workers import COMMAND, PROCESSES
from tests.writing import State

RUNS, FEW = 100, 3
"""How many runs there are, and how many of them `make test` plays."""
USERS = tuple(f"user=u{number}" for number in range(8))
THEIRS: State = {user: {KEY: 7.0} for user in USERS}
"""What somebody else sets; Git never asks for it."""


@dataclass(frozen=True)
class Weather:
    """A run about to start, and the random numbers that decide when it is struck."""

    scene: Scene
    draw: Random
    desired: State

    def after(self, act: Callable[[], object]) -> After:
        """Call a function when one or two requests have a response."""
        return After(self.draw.randint(1, 2), act)

    def calm(self) -> str | None:
        """No fault."""
        return self.scene.reconcile()

    def frozen_for_a_while(self) -> str | None:
        """The broker is silent for longer than a timeout."""
        freeze = partial(self.scene.machine.freeze, seconds=1.5)
        return self.scene.reconcile(progress=self.after(freeze))

    def frozen_to_the_end(self) -> str | None:
        """The broker is silent until the run has ended."""
        self.scene.hurry()
        return self.scene.reconcile(progress=self.after(self.scene.machine.freeze))

    def lost(self, what: str) -> str | None:
        """A request or its response is lost."""
        with wired(self.scene) as (cluster, wire):
            cut = partial(setattr, wire, "cut_at", what)
            return self.scene.reconcile(connect=lambda: cluster, progress=self.after(cut))

    def cut_for_good(self) -> str | None:
        """The network is gone for good."""
        self.scene.hurry()
        with wired(self.scene) as (cluster, wire):
            return self.scene.reconcile(connect=lambda: cluster, progress=self.after(wire.remove))

    def altered(self) -> str | None:
        """A row in Git is altered outside Git."""
        self.scene.hurry(verifying=1.0)
        user = self.draw.choice(sorted(self.desired))
        alter = partial(self.scene.lab.put, {user: THEIRS[user]})
        return self.scene.reconcile(progress=self.after(alter))

    def killed(self) -> str | None:
        """The worker is killed at a request, or while it writes a file."""
        request = partial(die_in_request, self.draw.randint(1, 2), before=self.draw.random() < 0.5)
        file = self.draw.choice(["plan.json", "00000002.parquet", "applied.json", "report.html"])
        return self._process(self.draw.choice([request, partial(die_in_file, file)]))

    def full(self) -> str | None:
        """The disk of the run store is full when a file is to be written."""
        file = self.draw.choice(["plan.json", "batch-0001.json", "applied.json"])
        said = self.scene.lab.root / "said"
        self._process(partial(fill_at, file, said))
        return said.read_text("utf-8")

    def _process(self, doom: Callable[..., None]) -> str | None:
        process = PROCESSES.Process(target=doom, args=(self.scene.lab.environment, COMMAND))
        process.start()
        process.join()
        return "exit 0" if process.exitcode == 0 else None


STRIKES: dict[str, Callable[[Weather], str | None]] = {
    "no fault": Weather.calm,
    "broker frozen for a while": Weather.frozen_for_a_while,
    "broker frozen until the run ended": Weather.frozen_to_the_end,
    "request lost": partial(Weather.lost, what="request"),
    "response lost": partial(Weather.lost, what="answer"),
    "network cut permanently": Weather.cut_for_good,
    "row changed by somebody else": Weather.altered,
    "worker killed": Weather.killed,
    "disk full": Weather.full,
}


def drawn(run: int) -> tuple[str, Random]:
    """Return the fault of a run, and the remaining random numbers."""
    draw = Random(run)  # noqa: S311 - the same faults each time
    return draw.choice(list(STRIKES)), draw


def sentence() -> str:
    """Return the page's sentence about the runs."""
    counts = Counter(drawn(run)[0] for run in range(RUNS))
    lots = "; ".join(f"{name} ({counts[name]})" for name in STRIKES)
    return f"\n{RUNS} runs in sequence, with these faults: {lots}.\n\n"


def play(scene: Scene, run: int) -> None:
    """Play one run with the fault of its number, then one without, which completes the work."""
    strike, draw = drawn(run)
    lab, before = scene.lab, scene.lab.stored()
    desired = _moved(before, draw)
    lab.desire(desired)
    with pytest.MonkeyPatch.context() as patch, scene.machine.healed():
        said = STRIKES[strike](Weather(replace(scene, patch=patch), draw, desired))
    stored = lab.stored()
    for user in USERS:
        assert stored.get(user) in (before.get(user), desired.get(user), THEIRS[user])
    assert said is None or said.startswith("exit ")
    assert stored == desired or said != "exit 0"

    lab.run("reconcile")

    assert lab.stored() == lab.known() == desired
    assert lab.known(INTENDED) == {}


def _moved(now: State, draw: Random) -> State:
    """Return another desired state than the current one."""
    values = {user: draw.choice([None, 1.0, 2.0, 3.0]) for user in USERS}
    desired: State = {user: {KEY: value} for user, value in values.items() if value}
    return desired if desired and desired != now else _moved(now, draw)
