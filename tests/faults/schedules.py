"""Random schedules of two and three runs whose requests are delayed, lost and doubled."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from random import Random

from quota_ops.model.errors import QuotaOpsError
from quota_ops.model.plans.ledger_edits import INTENDED
from quota_ops.runs.chain import CHAINS, run_stages
from quota_ops.store.run.folder import RunFolder
from tests.broker.lossy import IN_FLIGHT, PROMPT, TWICE, UNANSWERED, Lossy
from tests.faults.scene import KEY, Scene
from tests.unit.test_ledger_kills import ACCUSING
from tests.writing import State

SCHEDULES, FEW = 40, 3
"""How many schedules there are, and how many of them `make test` plays."""
MOST_RUNS = 3
USERS = tuple(f"user=u{number}" for number in range(4))


class Schedule:
    """Runs of one commit after the other, of which a later one may begin while one waits."""

    def __init__(self, scene: Scene, number: int) -> None:
        self.scene, self.draw = scene, Random(number)  # noqa: S311 - the same schedules each time
        self.drift = self.draw.choice(["repair", "ask", "report"])
        self.name, self.begun = number, 0
        self.desired: State = {}
        self.networks: list[Lossy] = []

    def run(self) -> None:
        """Play a whole run at a new commit, whose requests meet random fates."""
        self.begun += 1
        self.desired = {
            user: {KEY: value}
            for user in USERS
            if (value := self.draw.choice([None, 1.0, 2.0, 3.0]))
        } or {USERS[0]: {KEY: 1.0}}
        lab = self.scene.lab
        lab.desire(self.desired, drift=self.drift)
        commit = f"commit-{self.name}-{self.begun}"
        folder = RunFolder.start(lab.store.new_run("demo"), cluster="demo", commit=commit)
        network = Lossy(lab.cluster, self._fates())
        self.networks.append(network)
        with suppress(QuotaOpsError):  # whether a run may fail is asserted elsewhere
            run_stages(lab.resume(folder, connect=lambda: network), CHAINS["reconcile"])

    def _fates(self) -> Iterator[str | Callable[[], object]]:
        while True:
            fates: list[str | Callable[[], object]] = [
                *(PROMPT, PROMPT, UNANSWERED, IN_FLIGHT, TWICE),
                partial(self.scene.machine.freeze, seconds=1.5),
            ]
            if self.begun < MOST_RUNS:
                fates += [self.run, self.run]  # delayed until a newer run has ended
            yield self.draw.choice(fates)

    def deliver(self) -> None:
        """Let every request in flight arrive, and check what is shown after each."""
        self.draw.shuffle(self.networks)
        self.check()
        for network in self.networks:
            network.deliver()
            self.check()

    def check(self) -> None:
        """Assert that each stored value is declared, or shown as one that a run wrote."""
        lab = self.scene.lab
        shown = {row.entity: row.kind.value for row in lab.run("diff").differences()}
        assert not ACCUSING & set(shown.values())
        stored = lab.stored()
        for user in USERS:
            assert stored.get(user) == self.desired.get(user) or user in shown


def play_schedule(scene: Scene, number: int) -> None:
    """Play one schedule of two or three runs, and one more run, which completes the work."""
    scene.hurry(verifying=1.0)
    schedule = Schedule(scene, number)
    while schedule.begun < MOST_RUNS - 1:
        schedule.run()
    schedule.deliver()
    lab = scene.lab

    lab.run("reconcile")

    assert lab.stored() == lab.known() == schedule.desired
    assert lab.known(INTENDED) == {}
