"""Two and three runs and alters at once, whose requests are delayed, lost and doubled in any order.

The network and the cluster are a model; what runs note in the ledger, and the kinds that the next
run shows, are the product's. tests/faults/schedules.py plays such schedules on a real broker.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from random import Random

from quota_ops.model.plans import ledger_edits
from quota_ops.model.plans.ledger_edits import ALTERED, INTENDED, VERIFIED, LedgerKey
from quota_ops.model.quotas.quota import same
from quota_ops.model.quotas.rows import ActualRow, DesiredRow, Key, LedgerRow
from quota_ops.stages.apply.intent import is_as_planned
from tests.engines.oracle import decide
from tests.unit.test_ledger_kills import ACCUSING, CLUSTER, ENTITIES, KEY, Write, set_value

MOST = 3
"""The most runs at one time."""
FORGETS, RECORDS = {"gone", "cleared"}, {"in_sync"}
LATE = {"late_write", "returned"}
OF_RUNS = (None, 1.0, 2.0)
RUN, LATE_ALTER, DRIFT, EITHER = "run", "late alter", "drift", "either"
"""The truth about the value of a row: a run or a late alter wrote it, or an alter that no run had
followed when it arrived; either after the clear of an alter, which any run may also have sent, and
if a run has seen the row since, or is about to write it."""

FATES = ("prompt", "prompt", "delayed", "unanswered", "in flight", "twice", "rejected")
"""What becomes of a request, as in tests/broker/lossy.py. A `delayed` one is answered when it
arrives; one that is `rejected` was sent again, and the first is still in flight."""
SCHEDULES, STEPS = 1_000, 30


@dataclass(eq=False)
class Run:
    """A run or an alter: its number and commit, its writes, and what has become of its rows."""

    number: int
    commit: str
    writes: list[Write]
    read: dict[str, float | None]
    """The values to read back: those that it writes, and those that it only records."""
    git: dict[str, float]
    reported: dict[str, float | None]
    """The rows that it only reports, with their values."""
    is_alter: bool = False
    noted: bool = False
    open: set[str] = field(default_factory=set)
    """The entities of which a request got no response."""
    unsent: set[str] = field(default_factory=set)
    waits: int = 0
    """How many requests have not been answered yet, although an answer will come."""

    def row(self, entity: str, value: float | None, state: str) -> LedgerRow:
        """Return a row as this run notes it in the ledger."""
        name = f"run-{self.number}"
        place = (CLUSTER, entity, KEY, value, state, None, None)
        return LedgerRow(*place, self.commit, name, "", self.number)


class Schedule:
    """A cluster that only runs write, the requests on their way to it, and a ledger."""

    def __init__(self, draw: Random) -> None:
        self.draw = draw
        self.drift = draw.choice(["repair", "report"])
        self.truth: dict[str, str] = {}
        self.decided: dict[str, int] = {}
        """The number of the last run that has sent or verified a row."""
        self.followed: dict[str, int] = {}
        """The number of the last run or alter that has reported a row, or noted it."""
        self.git: dict[str, float] = {}
        self.version = 0
        self.begun = 0
        self.claim: tuple[int, str] = (0, "")
        self.cluster: dict[str, float] = {}
        self.ledger: dict[LedgerKey, LedgerRow] = {}
        self.runs: list[Run] = []
        self.in_flight: list[tuple[Run, Write, bool]] = []

    def step(self) -> None:
        """Let something happen: most often, a run goes on."""
        acts = {
            self.git_moves: 2,
            self.a_run_plans: 2 if len(self.runs) < MOST else 0,
            self.a_person_alters: 1 if len(self.runs) < MOST else 0,
            self.a_run_goes_on: 8 if self.runs else 0,
            self.a_request_arrives: 1 if self.in_flight else 0,
            self.a_run_is_killed: 0.5 if self.runs else 0,
        }
        (act,) = self.draw.choices([*acts], [*acts.values()])
        act()

    def git_moves(self) -> None:
        """Merge a pull request."""
        set_value(self.git, self.draw.choice(ENTITIES), self.draw.choice(OF_RUNS))
        self.version += 1

    def a_run_plans(self) -> None:
        """Start a run, which compares and plans."""
        self.begun += 1
        self.runs.append(self._new_run(self.begun))

    def a_person_alters(self) -> None:
        """Start an alter of one row, to a value of its own or none."""
        self.begun += 1
        entity, values = (self.draw.choice(ENTITIES), [None, *[10.0 * self.begun] * 3])
        write = Write(entity, self.cluster.get(entity), self.draw.choice(values))
        read = {entity: write.after}
        self.runs.append(Run(self.begun, "", [write], read, {}, {}, is_alter=True))

    def a_run_goes_on(self) -> None:
        """Let a run do its next step, unless it waits for a response."""
        run = self.draw.choice(self.runs)
        if not run.waits:
            self._go_on(run, self.draw.choice(FATES))

    def a_request_arrives(self) -> None:
        """Deliver one of the requests in flight."""
        request = self.draw.choice(self.in_flight)
        self.in_flight.remove(request)
        run, write, is_answered = request
        run.waits -= is_answered
        self._arrive(run, write)

    def a_run_is_killed(self) -> None:
        """End a run without anything that it would have noted."""
        self.runs.remove(self.draw.choice(self.runs))

    def _go_on(self, run: Run, fate: str) -> None:
        """Let a run note its intents, or send its next row, or read back."""
        if not run.noted and self._is_overtaken(run):
            self.runs.remove(run)
        elif not run.noted:
            if not run.is_alter:
                self.claim = max(self.claim, (run.number, run.commit))
            self._intend(run)
        elif run.writes and self._is_overtaken(run):
            run.unsent |= {write.entity for write in run.writes}
            run.writes.clear()
        elif run.writes:
            self._send(run, run.writes.pop(0), fate)
        else:
            self._verify(run)
            self.runs.remove(run)

    def _send(self, run: Run, write: Write, fate: str) -> None:
        is_free = run.is_alter or is_as_planned(
            write.before, write.after, self.cluster.get(write.entity)
        )
        if not is_free:
            run.unsent.add(write.entity)
            return
        self._decide(run, [write.entity])
        if fate in {"prompt", "unanswered", "twice"}:
            self._arrive(run, write)
        if fate in {"unanswered", "in flight", "twice", "rejected"}:
            run.open.add(write.entity)
        if fate == "rejected":
            run.unsent.add(write.entity)
        if fate in {"delayed", "in flight", "twice", "rejected"}:
            run.waits += fate == "delayed"
            self.in_flight.append((run, write, fate == "delayed"))

    def check(self) -> None:
        """Assert that each row is shown as changed outside Git if an alter has, and not else."""
        kinds = self._kinds()
        for entity, kind in kinds.items():
            truth = self.truth.get(entity, RUN)
            assert truth in {DRIFT, EITHER} or kind not in ACCUSING, (entity, truth, kinds)
            assert truth != DRIFT or kind not in LATE, (entity, truth, kinds)

    def end(self) -> None:
        """Let what is in flight arrive; every value is then declared, or shown with its kind."""
        while self.in_flight:
            self.a_request_arrives()
        self.check()
        shown = self._kinds()
        for entity in ENTITIES:
            assert self.cluster.get(entity) == self.git.get(entity) or entity in shown
        last = self._new_run(self.begun + 1)
        self._intend(last)
        for write in last.writes:
            self._arrive(last, write)
        self._verify(last)
        left = {entity: self.cluster.get(entity) for entity in ENTITIES} | last.reported
        assert {entity: left[entity] for entity in ENTITIES if left[entity] is not None} == (
            self.cluster
        )
        for entity in {*ENTITIES} - last.reported.keys():
            assert self.cluster.get(entity) == self.git.get(entity)
        assert self._kinds().keys() == last.reported.keys()

    def _new_run(self, number: int) -> Run:
        kinds = self._kinds()
        only_shown = {"unmanaged"} | ({"drifted"} if self.drift == "report" else set())
        reported = {one for one, kind in kinds.items() if kind in only_shown}
        changed = {one for one, kind in kinds.items() if kind not in FORGETS | RECORDS} - reported
        writes = [
            Write(entity, self.cluster.get(entity), self.git.get(entity))
            for entity in sorted(changed)
        ]
        read = {entity: self.git.get(entity) for entity in kinds.keys() - reported}
        seen = {entity: self.cluster.get(entity) for entity in sorted(reported)}
        return Run(number, f"c{self.version}", writes, read, dict(self.git), seen)

    def _intend(self, run: Run) -> None:
        run.noted = True
        stored = {Key(entity, KEY): value for entity, value in self.cluster.items()}
        state = ALTERED if run.is_alter else INTENDED
        intents = [run.row(write.entity, write.after, state) for write in run.writes]
        ledger_edits.intend(self.ledger, intents, stored)
        self._follow(run, (intent.entity for intent in intents))

    def _follow(self, run: Run, entities: Iterable[str]) -> None:
        """Note that a run has seen rows, or is about to write them, and may not do it."""
        for entity in entities:
            self.followed[entity] = max(run.number, self.followed.get(entity, 0))
            if self.truth.get(entity) == DRIFT and entity not in run.reported:
                self.truth[entity] = EITHER

    def _decide(self, run: Run, entities: Iterable[str]) -> None:
        """Note that a run has sent rows, or verified them."""
        for entity in () if run.is_alter else entities:
            self.decided[entity] = max(run.number, self.decided.get(entity, 0))

    def _verify(self, run: Run) -> None:
        """Do what the end of apply and verify do, or that of an alter."""
        name = f"run-{run.number}"
        ledger_edits.withdraw(self.ledger, name, {Key(one, KEY) for one in run.unsent - run.open})
        found = {
            Key(entity, KEY): value
            for entity, value in run.read.items()
            if entity not in run.unsent and same(value, self.cluster.get(entity))
        }
        if run.is_alter:
            sent = {Key(one, KEY): value for one, value in run.read.items()}
            unsent = {Key(one, KEY) for one in run.unsent}
            altered = {key: sent[key] for key in sent.keys() - unsent}
            ledger_edits.count_as_altered(self.ledger, altered, name, run.number)
        else:
            rows = [run.row(key.entity, value, VERIFIED) for key, value in found.items()]
            ledger_edits.confirm(self.ledger, rows)
            reported = {Key(one, KEY): value for one, value in run.reported.items()}
            ledger_edits.outlive(self.ledger, reported, run.number)
            self._decide(run, (key.entity for key in found))
            self._follow(run, run.reported)
        unanswered = {key for key in found if key.entity in run.open}
        ledger_edits.settle(self.ledger, name, unanswered, found)
        ledger_edits.drop_absences(self.ledger)

    def _is_overtaken(self, run: Run) -> bool:
        if run.is_alter:
            return False
        later = [
            row
            for row in self.ledger.values()
            if (row.sequence or 0) > run.number and row.state != ALTERED
        ]
        number, commit = self.claim
        return (number > run.number and commit != run.commit) or any(
            row.commit != run.commit or row.value != run.git.get(row.entity) for row in later
        )

    def _arrive(self, run: Run, write: Write) -> None:
        entity = write.entity
        if same(self.cluster.get(entity), write.after):
            return
        set_value(self.cluster, entity, write.after)
        if not run.is_alter:
            self.truth[entity] = RUN
        elif write.after is None or self.followed.get(entity, 0) > run.number:
            self.truth[entity] = EITHER
        else:
            self.truth[entity] = DRIFT
        if write.after is not None and run.is_alter and self.decided.get(entity, 0) > run.number:
            self.truth[entity] = LATE_ALTER

    def _kinds(self) -> dict[str, str]:
        desired = [
            DesiredRow(CLUSTER, entity, KEY, value, None, None, "f", 1)
            for entity, value in self.git.items()
        ]
        actual = [
            ActualRow(CLUSTER, entity, KEY, value, True, None)
            for entity, value in self.cluster.items()
        ]
        found = decide(desired, actual, self.ledger.values(), drift=self.drift)
        return {row.entity: row.kind.value for row in found}


def test_any_schedule_of_runs() -> None:
    """Whatever arrives late, each value is declared or shown as a run's; the next run ends it."""
    for seed in range(SCHEDULES):
        schedule = Schedule(Random(seed))  # noqa: S311 - the same schedules each time
        for _ in range(STEPS):
            schedule.step()
            schedule.check()
        schedule.end()
