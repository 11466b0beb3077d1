"""Runs killed at any point while Git and the cluster change, and the run after them."""

from itertools import count
from typing import NamedTuple

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from quota_ops.model.plans import ledger_edits
from quota_ops.model.plans.ledger_edits import LedgerKey, remember_cleared
from quota_ops.model.quotas.rows import ActualRow, DesiredRow, Key, LedgerRow
from quota_ops.stages.apply.intent import is_as_planned
from tests.engines.oracle import decide

CLUSTER, KEY = "c", "producer_byte_rate"
ENTITIES = ("user=a", "user=b")
UNGUARDED = {"pending", "removed"}
ACCUSING = {"drifted", "takeover", "conflict", "changed_since", "gone", "unmanaged"}
BEFORE_INTENT, BEFORE_SEND = -2, -1
NOBODY, US, THEM = "nobody", "us", "them"

entities = st.sampled_from(ENTITIES)
ours = st.none() | st.sampled_from([1.0, 2.0, 3.0])
theirs = st.none() | st.sampled_from([10.0, 20.0])
moments = st.sampled_from([BEFORE_INTENT, BEFORE_SEND, 0, 1, 2])


NUMBERS = count(1)
"""The numbers of runs, larger for each that begins."""


class Write(NamedTuple):
    """A row of a plan."""

    entity: str
    before: float | None
    after: float | None


class Killed(RuleBasedStateMachine):
    """A cluster, a Git repository and a ledger; only this class knows who wrote last."""

    def __init__(self) -> None:
        super().__init__()
        self.git: dict[str, float] = {}
        self.cluster: dict[str, float] = {}
        self.last: dict[str, str] = dict.fromkeys(ENTITIES, NOBODY)
        self.ledger: dict[LedgerKey, LedgerRow] = {}
        self.number = next(NUMBERS)

    @rule(entity=entities, value=ours)
    def git_moves(self, entity: str, value: float | None) -> None:
        """Merge a pull request."""
        set_value(self.git, entity, value)

    @rule(moment=moments)
    def run_is_killed(self, moment: int) -> None:
        """Kill a run before it records its intent, before it sends, or after so many writes."""
        if moment > BEFORE_INTENT:
            self._apply(self._plan(), sends=max(moment, 0))

    @rule()
    def run_ends(self) -> None:
        """Let a run with every guard overridden bring the cluster to the state in Git."""
        self._apply(self._plan(), sends=len(ENTITIES))
        self._verify()
        left = self._kinds()
        assert set(left.values()) <= {"unmanaged"}
        assert {one: self.cluster[one] for one in self.cluster.keys() - left.keys()} == self.git
        assert not any(self.last[entity] == US for entity in left)

    @invariant()
    def nothing_of_others_is_replaced_without_a_guard(self) -> None:
        """A plan writes, without an approval, nothing or only what a run of quota-ops wrote."""
        assert not [
            entity
            for entity, kind in self._kinds().items()
            if kind in UNGUARDED and entity in self.cluster and self.last[entity] != US
        ]

    def _kinds(self) -> dict[str, str]:
        desired = [
            DesiredRow(CLUSTER, entity, KEY, value, None, None, "f", 1)
            for entity, value in self.git.items()
        ]
        actual = [
            ActualRow(CLUSTER, entity, KEY, value, True, None)
            for entity, value in self.cluster.items()
        ]
        found = decide(desired, actual, self.ledger.values())
        return {row.entity: row.kind.value for row in found}

    def _plan(self) -> list[Write]:
        still = {"unmanaged", "in_sync", "gone", "cleared"}
        return [
            Write(entity, self.cluster.get(entity), self.git.get(entity))
            for entity, kind in sorted(self._kinds().items())
            if kind not in still
        ]

    def _apply(self, plan: list[Write], *, sends: int) -> None:
        stored = {Key(entity, KEY): value for entity, value in self.cluster.items()}
        now = [
            write
            for write in plan
            if is_as_planned(write.before, write.after, self.cluster.get(write.entity))
        ]
        self.number = next(NUMBERS)
        ledger_edits.intend(
            self.ledger, [self._row(write.entity, write.after, "intended") for write in now], stored
        )
        for write in now[:sends]:
            set_value(self.cluster, write.entity, write.after)
            self.last[write.entity] = US

    def _verify(self) -> None:
        """Read back every row that differs, except those that the plan only reports."""
        read = [entity for entity, kind in self._kinds().items() if kind != "unmanaged"]
        ledger_edits.confirm(
            self.ledger, [self._row(one, self.cluster.get(one), "verified") for one in read]
        )

    def _row(self, entity: str, value: float | None, state: str) -> LedgerRow:
        run = f"run-{self.number}"
        return LedgerRow(CLUSTER, entity, KEY, value, state, None, None, None, run, "", self.number)


class KilledAmongOthers(Killed):
    """The same, with changes made outside Git as well."""

    @rule(entity=entities, value=theirs)
    def somebody_changes_the_cluster(self, entity: str, value: float | None) -> None:
        """Change a value outside Git."""
        set_value(self.cluster, entity, value)
        self.last[entity] = THEM

    @rule(entity=entities, value=theirs)
    def somebody_is_faster(self, entity: str, value: float | None) -> None:
        """Change a value between plan and apply; the run ends at once and leaves the row alone."""
        plan = self._plan()
        self.somebody_changes_the_cluster(entity, value)
        self._apply(plan, sends=len(ENTITIES))


class KilledAlone(Killed):
    """No change is made outside quota-ops."""

    @invariant()
    def nobody_is_accused(self) -> None:
        """No row appears as changed outside Git, and no guard requires approval."""
        assert not ACCUSING & set(self._kinds().values())


class KilledAndLate(KilledAlone):
    """No change is made outside quota-ops, and requests of a killed run may arrive much later."""

    def __init__(self) -> None:
        super().__init__()
        self.sent: list[Write] = []

    def _apply(self, plan: list[Write], *, sends: int) -> None:
        self.sent += plan[sends:]
        super()._apply(plan, sends=sends)

    def _verify(self) -> None:
        clears = [write for write in self._plan_before if write.after is None]
        super()._verify()
        remember_cleared(
            self.ledger, [self._row(clear.entity, clear.before, "cleared") for clear in clears]
        )

    def _plan(self) -> list[Write]:
        self._plan_before = super()._plan()
        return self._plan_before

    @rule()
    def a_late_write_arrives(self) -> None:
        """Deliver the oldest write without a response after all."""
        if self.sent:
            late = self.sent.pop(0)
            set_value(self.cluster, late.entity, late.after)
            self.last[late.entity] = US


@pytest.mark.parametrize("machine", [KilledAlone, KilledAmongOthers, KilledAndLate])
def test_runs_killed_anywhere(machine: type[Killed]) -> None:
    """Foreign values are replaced only through a guard, and each run ends at Git's state."""
    case = machine.TestCase
    case.settings = settings(max_examples=50, stateful_step_count=12, deadline=None)
    case("runTest").runTest()


def set_value(values: dict[str, float], entity: str, value: float | None) -> None:
    """Set or clear the value of an entity."""
    values.pop(entity, None)
    if value is not None:
        values[entity] = value
