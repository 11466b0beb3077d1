"""A run that is killed by SIGKILL at any point, and rerun, ends like an undisturbed one."""

import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count
from multiprocessing import get_context

import pytest

from quota_ops.model.plans.ledger_edits import INTENDED
from quota_ops.runs.chain import RESUMED, run_stages
from quota_ops.store.run.files import PLAN
from tests.broker.killing import PRELOAD, kill_after, kill_at_step
from tests.faults.table import ALL
from tests.lab import EVERY_GUARD, Lab
from tests.writing import State

KEY, OTHER = "producer_byte_rate", "consumer_byte_rate"
PROCESSES = get_context("forkserver")
PROCESSES.set_forkserver_preload(PRELOAD)
FILES, REQUESTS = 16, 4
"""What a resumed run writes at the least, and sends."""
LAST_STEP_BEFORE_APPLY = 21
STRIDE = 1 if ALL else 9
"""From one step at which a run is killed to the next: `make faults` takes every step."""
ALLOW = [word for guard in EVERY_GUARD for word in ("--allow", guard)]


@dataclass(frozen=True)
class Play:
    """Rows that differ in every way, of users that no other play has."""

    lab: Lab
    name: str

    def state(self, **values: float) -> dict[str, dict[str, float | None]]:
        """Return a limit for each user, named by its role in the play."""
        return {f"user={self.name}-{user}": {KEY: value} for user, value in values.items()}

    @property
    def desired(self) -> State:
        """Return the state in Git."""
        both = {f"client-id=app,user={self.name}-pair": {KEY: 1.0, OTHER: 2.0}}
        return self.state(same=1.0, new=2.0, moved=3.0, drifted=4.0, takeover=5.0) | both

    @property
    def before(self) -> State:
        """Return what the cluster stores before."""
        ours = self.state(same=1.0, moved=33.0, drifted=44.0, removed=6.0, changed_since=77.0)
        return ours | self.state(takeover=55.0, unmanaged=8.0)

    @property
    def verified(self) -> State:
        """Return the rows verified in the ledger."""
        moved = self.state(same=1.0, moved=33.0, drifted=4.0)
        return moved | self.state(removed=6.0, changed_since=7.0, gone=9.0)

    def begin(self) -> None:
        """Write every side."""
        self.lab.put(self.before)
        self.lab.note(self.verified)
        self.lab.desire(self.desired)

    def stored(self) -> State:
        """Return what the cluster stores of this play."""
        mine = f"user={self.name}-"
        return {one: limits for one, limits in self.lab.stored().items() if mine in one}

    def kill(self, die: Callable[..., None], arguments: Sequence[str]) -> bool:
        """Run a command that kills itself; return whether it did before its end."""
        process = PROCESSES.Process(target=die, args=(self.lab.environment, arguments))
        process.start()
        process.join()
        assert process.exitcode in {0, -signal.SIGKILL}
        return process.exitcode != 0

    def check_what_is_ours(self) -> None:
        """Check that the ledger has every row that the killed run changed on the cluster."""
        verified, intended = rows(self.lab.known()), rows(self.lab.known(INTENDED))
        before, now = rows(self.before), rows(self.stored())
        for row in before.keys() | now.keys():
            if now.get(row) != before.get(row):
                noted = [known[row] for known in (verified, intended) if row in known]
                assert now.get(row) in noted or row not in {*now, *verified}

    def check_the_end(self) -> None:
        """Check that cluster and ledger are as after an undisturbed run."""
        assert self.stored() == {**self.desired, **self.state(unmanaged=8.0)}
        assert self.lab.known() == self.desired
        assert self.lab.known(INTENDED) == {}


def rows(state: State) -> dict[tuple[str, str], float | None]:
    """Return a state row by row."""
    return {(one, key): value for one, keys in state.items() for key, value in keys.items()}


def play(lab: Lab, name: str) -> Play:
    """Create a play with a run store of its own, on the same broker."""
    (lab.root / name).mkdir()
    own = Lab(lab.root / name, lab.cluster, lab.bootstrap)
    own.connection_file.write_bytes(lab.connection_file.read_bytes())
    begun = Play(own, name)
    begun.begin()
    return begun


@pytest.mark.usefixtures("small_batches")
def test_killed_at_every_step_and_resumed(lab: Lab) -> None:
    """A run that is killed at any file or request from apply to report can be resumed."""
    for step in count(1, STRIDE):
        one = play(lab, f"resumed-{step}")
        folder = one.lab.run("plan")
        digest = folder.read_json(PLAN)["digest"]
        command = ("reconcile", "--run", str(folder.place), "--approve", digest)
        killed = one.kill(partial(kill_at_step, step), command)
        one.check_what_is_ours()

        run_stages(one.lab.resume(folder, approve=digest), RESUMED)

        one.check_the_end()
        if not killed:
            break
    assert step > FILES + REQUESTS


def test_killed_at_every_step_and_run_afresh(lab: Lab) -> None:
    """After a reconcile is killed at any file or request, the next run completes the work."""
    for step in count(LAST_STEP_BEFORE_APPLY, STRIDE):
        one = play(lab, f"afresh-{step}")
        command = ("reconcile", "demo", *ALLOW, "--reason", "a test")
        killed = one.kill(partial(kill_at_step, step), command)
        one.check_what_is_ours()

        one.lab.run("reconcile")

        one.check_the_end()
        if not killed:
            break


@pytest.mark.parametrize("milliseconds", [0, 2, 5, 10, 20, 35, 60, 100] if ALL else [0, 10, 60])
def test_killed_at_any_moment(milliseconds: int, lab: Lab) -> None:
    """After a kill with requests in flight or responses unread, the next run completes the work."""
    one = play(lab, f"moment-{milliseconds}")
    command = ("reconcile", "demo", *ALLOW, "--reason", "a test")
    one.kill(partial(kill_after, milliseconds / 1000), command)
    one.check_what_is_ours()

    one.lab.run("reconcile")

    one.check_the_end()


def test_rows_of_a_killed_first_run_are_guarded(lab: Lab) -> None:
    """Rows that a run wrote and never read back are managed: a guard blocks clearing them all."""
    written = {f"user=u{number}": {KEY: 1.0} for number in range(5)}
    never_sent = {"user=u9": {KEY: 9.0}}
    lab.put({**written, "user=u9": {KEY: 1.0}})
    lab.note({**written, **never_sent}, INTENDED)
    lab.desire({"user=other": {KEY: 1.0}})

    _, error = lab.refused("plan", allow={})

    assert error.message == (
        "guards block this plan: "
        "removals: 5 of 5 managed rows would be removed, more than 10 %; "
        "owner_removed: every row that team has now would be cleared (5); "
        "unlimited: user=u0 producer_byte_rate and 4 more would lift the limit of clients"
    )
