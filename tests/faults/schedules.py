"""Random schedules of runs, rollbacks and alters whose requests are delayed, lost and doubled."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from random import Random

from quota_ops.model.errors import QuotaOpsError
from quota_ops.runs.chain import CHAINS, RESUMED, run_stages
from quota_ops.runs.rollback import start_rollback
from quota_ops.store.run.folder import RunFolder
from tests.broker.late_alters import alter_users
from tests.broker.lossy import IN_FLIGHT, PROMPT, TWICE, UNANSWERED, Lossy
from tests.faults.scene import KEY, Scene
from tests.unit.test_ledger_kills import ACCUSING
from tests.writing import State

SCHEDULES, FEW = 24, 2
"""How many schedules there are, and how many of them `make test` plays."""
MOST_RUNS = 3
USERS = tuple(f"user=u{number}" for number in range(4))


class Schedule:
    """Runs of one commit after the other, of which a later one may begin while one waits.

    Between them, a person may alter a limit, or roll the last run back.
    """

    def __init__(self, scene: Scene, number: int) -> None:
        self.scene, self.draw = scene, Random(number)  # noqa: S311 - the same schedules each time
        self.drift = self.draw.choice(["repair", "ask", "report"])
        self.name, self.begun = number, 0
        self.desired: State = {}
        self.networks: list[Lossy] = []
        self.last: RunFolder | None = None
        self.verified: set[str] = set()
        """The users whose declared value the last run has verified."""
        self.altered: dict[str, dict[float, bool]] = {}
        """The values of the alters of each user, and whether a run has verified the user since."""

    def step(self) -> None:
        """Run, alter or roll back."""
        if self.begun == 0:
            self.run()
        else:
            self.draw.choice([self.run, self.alter, self.roll_back])()

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
        self._play(folder, "reconcile")

    def roll_back(self) -> None:
        """Take the last run back, as a whole or in part."""
        if self.last is not None:
            self.begun += 1
            with suppress(QuotaOpsError):  # it may have changed nothing
                folder = start_rollback(self.scene.lab.store, self.last, by="anna", reason="INC")
                self._play(folder, "rollback")

    def alter(self) -> None:
        """Alter a limit to a value that nothing else sets."""
        self.begun += 1
        user, value = self.draw.choice(USERS), 1000.0 * (self.name + 1) + self.begun
        self.altered.setdefault(user, {})[value] = False
        with suppress(QuotaOpsError):
            alter_users(self.scene.lab, self._network(), {user: value})

    def _play(self, folder: RunFolder, command: str) -> None:
        lab, network = self.scene.lab, self._network()
        before = {user: {*values} for user, values in self.altered.items()}
        run = lab.resume(folder, connect=lambda: network)
        with suppress(QuotaOpsError):  # whether a run may fail is asserted elsewhere
            run_stages(run, CHAINS[command])
            if command == "rollback":
                run_stages(run, RESUMED)
            elif lab.stored() == self.desired:
                for user in before.keys() & self.desired.keys():
                    self.altered[user] |= dict.fromkeys(before[user], True)
        self.last = folder

    def _network(self) -> Lossy:
        self.networks.append(Lossy(self.scene.lab.cluster, self._fates()))
        return self.networks[-1]

    def _fates(self) -> Iterator[str | Callable[[], object]]:
        while True:
            fates: list[str | Callable[[], object]] = [
                *(PROMPT, PROMPT, UNANSWERED, IN_FLIGHT, TWICE),
                partial(self.scene.machine.freeze, seconds=1.5),
            ]
            if self.begun < MOST_RUNS:
                fates += [self.step, self.step]  # delayed until a newer run has ended
            yield self.draw.choice(fates)

    def deliver(self) -> None:
        """Let every request in flight arrive, and check what is shown after each."""
        self.draw.shuffle(self.networks)
        self.check()
        for network in self.networks:
            network.deliver()
            self.check()

    def check(self) -> None:
        """Assert that each stored value is declared, or shown with its true kind.

        That is, as one that a run wrote; or as changed outside Git, if an alter has set it and no
        run has verified the row since.
        """
        lab = self.scene.lab
        shown = {row.entity: row.kind.value for row in lab.run("diff").differences()}
        stored = lab.stored()
        for user in USERS:
            value = stored.get(user, {}).get(KEY)
            is_late = self.altered.get(user, {}).get(value or 0.0)
            assert shown.get(user) not in ACCUSING or is_late is False, (user, value, shown)
            assert stored.get(user) == self.desired.get(user) or user in shown


def play_schedule(scene: Scene, number: int) -> None:
    """Play one schedule of two or three runs, and one more run, which completes the work."""
    scene.hurry(verifying=1.0)
    schedule = Schedule(scene, number)
    while schedule.begun < MOST_RUNS - 1:
        schedule.step()
    schedule.deliver()
    lab = scene.lab
    lab.run("reconcile")
    schedule.check()

    lab.desire(schedule.desired, drift="repair")
    lab.run("reconcile")
    left = {row.entity: row.before for row in lab.run("diff").differences()}
    assert lab.stored() == {
        **schedule.desired,
        **{user: {KEY: value} for user, value in left.items()},
    }
    assert all(value in schedule.altered[user] for user, value in left.items())
    assert lab.known() == schedule.desired
    lab.put({user: {KEY: None} for user in left})
