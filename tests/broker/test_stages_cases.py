"""The diff's cases, and generated states, through all eight stages."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from quota_ops.lab.kafka.broker import RunningBroker
from quota_ops.model.plans.hold import Hold
from quota_ops.model.plans.ledger_edits import INTENDED, VERIFIED
from quota_ops.model.plans.plan import exact
from quota_ops.model.quotas.difference import Action
from quota_ops.model.quotas.entity import Entity
from quota_ops.model.quotas.filter import EntityFilter, FilterPart, Match
from quota_ops.model.quotas.quota import QUOTA_KEYS
from quota_ops.model.quotas.rows import ActualRow, DesiredRow, LedgerRow
from quota_ops.store.ledger import holds
from quota_ops.store.run.folder import RunFolder
from tests.engines.cases import STATES, Case, cases
from tests.lab import Lab, open_lab
from tests.writing import State

CASES = [case for case in cases() if case.broker is None and case.invalid_files is None]
NUMBERS = max(STATES.values())
LEFT_ALONE = {Action.REPORT, Action.HELD}
SEED = "user=seed"
Key = tuple[str, str]
Rows = Mapping[Key, str]
"""Exact values as texts, by entity and key."""


@dataclass(frozen=True)
class Ended:
    """The result of a lab: the plan, then the cluster, the ledger and the plan after it."""

    planned: Mapping[Key, tuple[str, str]]
    stored: Rows
    verified: Rows
    intended: Rows
    planned_then: Mapping[Key, tuple[str, str]]


@pytest.fixture(scope="module")
def ended(
    broker: RunningBroker, tmp_path_factory: pytest.TempPathFactory
) -> Mapping[tuple[str, bool], Ended]:
    """Run every case, those of one policy in one run; each names users of its own."""
    found = {}
    for policy, group in groupby(sorted(CASES, key=policy_of), key=policy_of):
        with open_lab(broker, tmp_path_factory.mktemp("case")) as lab:
            found[policy] = end(lab, policy, list(group))
    return found


def policy_of(case: Case) -> tuple[str, bool]:
    """Return the settings of a whole cluster, so that cases with the same settings share it."""
    return case.drift, case.clear_unmanaged


def is_current(row: LedgerRow, state: str) -> bool:
    """Return whether a row of a case has a state, no later run replaced it, and it is managed."""
    is_known = row.state == state and row.sequence == STATES[state]
    return is_known and (state != VERIFIED or row.value is not None)


def own(case: Case, entity: str) -> str:
    """Return an entity of this case alone."""
    names = Entity.parse(entity).as_dict()
    renamed = {kind: name and f"{case.cluster}-{name}" for kind, name in names.items()}
    return Entity.of(renamed).text


def state_of(case: Case, rows: tuple[DesiredRow | ActualRow | LedgerRow, ...]) -> State:
    """Return a side of a case as a state."""
    state: dict[str, dict[str, float | None]] = {}
    for row in rows:
        state.setdefault(own(case, row.entity), {})[row.key] = row.value
    return state


def end(lab: Lab, policy: tuple[str, bool], group: list[Case]) -> Ended:
    """Write each side of the cases, plan, reconcile, and plan again."""
    seed: State = {SEED: {"producer_byte_rate": 1.0}}
    lab.put(merged([seed, *(state_of(case, case.actual) for case in group)]))
    rows = [(case, row) for case in group for row in case.actual]
    protect = {own(case, row.entity) for case, row in rows if row.hands_off}
    outside = {own(case, row.entity) for case, row in rows if not row.in_scope}
    desired = merged([seed, *(state_of(case, case.desired) for case in group)])
    everybody = {*desired, *lab.stored()}
    lab.desire(
        desired,
        drift=policy[0],
        clear_unmanaged=policy[1],
        protect=[names(one) for one in sorted(protect)],
        scope=[names(one) for one in sorted(everybody - outside)],
    )
    lab.note(seed)
    for case in group:
        for row in case.ledger:
            before = (row.sequence or 0) - NUMBERS  # of the lab's own runs, which begin at 1
            lab.note(state_of(case, (row,)), row.state, run=row.run, sequence=before)
        for entity in case.held:
            hold(lab, own(case, entity))
    planned = decisions(lab.run("plan"))
    lab.run("reconcile")
    return Ended(
        planned,
        rows_of(lab.stored()),
        rows_of(lab.known()),
        rows_of(lab.known(INTENDED)),
        decisions(lab.run("plan")),
    )


def hold(lab: Lab, entity: str) -> None:
    """Hold an entity for an hour."""
    names = Entity.parse(entity).as_dict().items()
    who = EntityFilter(tuple(FilterPart(kind, Match.EXACT, name) for kind, name in names))
    now = datetime.now(UTC)
    word = Hold(who, now + timedelta(hours=1), "anna", "a test", now)
    holds.add(lab.store.of_cluster(lab.cluster.cluster_id).holds, word)


def merged(states: list[State]) -> State:
    """Merge several states with no entity in common."""
    return {entity: limits for state in states for entity, limits in state.items()}


def names(entity: str) -> dict[str, Any]:
    """Return an entity as cluster.yaml names it."""
    parts = Entity.parse(entity).as_dict()
    return {kind: {"default": True} if name is None else name for kind, name in parts.items()}


def decisions(folder: RunFolder) -> Mapping[Key, tuple[str, str]]:
    """Return the decision of a plan for each row that differs."""
    return {
        (row.entity, row.key): (row.kind.value, row.action.value) for row in folder.differences()
    }


def rows_of(state: State) -> Rows:
    """Return a state row by row."""
    return {(one, key): exact(value) for one, keys in state.items() for key, value in keys.items()}


@pytest.mark.parametrize("case", CASES, ids=[f"{one.cluster} {one.name}" for one in CASES])
def test_case(case: Case, ended: Mapping[tuple[str, bool], Ended]) -> None:
    """A case ends as its actions require, on the broker and in the ledger.

    Only reports are left.
    """
    end = ended[policy_of(case)]
    decided = {
        (own(case, entity), key): (kind, action) for entity, key, kind, action in case.expected
    }
    desired, actual = (rows_of(state_of(case, side)) for side in (case.desired, case.actual))
    verified, intended = (
        rows_of(state_of(case, tuple(row for row in case.ledger if is_current(row, word))))
        for word in (VERIFIED, INTENDED)
    )
    touched = {row for row, (_, action) in decided.items() if action not in LEFT_ALONE}
    written = {row for row in touched if decided[row][1] != Action.FORGET}
    asked = {row: desired[row] for row in touched if row in desired}

    def mine(rows: Mapping[Key, Any]) -> dict[Key, Any]:
        known = {*decided, *desired, *actual, *verified, *intended}
        return {row: value for row, value in rows.items() if row in known}

    def without(rows: Rows, gone: set[Key]) -> dict[Key, str]:
        return {row: value for row, value in rows.items() if row not in gone}

    assert mine(end.planned) == decided
    assert mine(end.stored) == without(actual, written) | asked
    assert mine(end.verified) == without(verified, touched) | asked
    assert mine(end.intended) == without(intended, set(decided))
    assert mine(end.planned_then) == {
        row: said for row, said in decided.items() if row not in touched
    }


def test_the_broker_stores_the_others_differently() -> None:
    """Each case that is not run here has a reason."""
    left_out = {case.name: case.broker for case in cases() if case.broker is not None}

    assert left_out == {
        "a key that quota-ops does not know is never touched": "it rejects unknown keys",
        "a late write of a protected entity is reported": "check refuses to declare one",
        "two declared addresses, each stored in another spelling too, whatever its value": (
            "a broker test of its own has the addresses"
        ),
        "no run clears another spelling of a declared address, or a host name that may be one": (
            "a broker test of its own has the addresses"
        ),
    }


LOOKS_LIKE_DEFAULT = Entity.of({"user": "<default>"}).text
NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)
PART = st.none() | NAMES
ENTITIES = st.one_of(
    st.builds(lambda user: {"user": user}, PART),
    st.builds(lambda client: {"client-id": client}, PART),
    st.builds(lambda user, client: {"user": user, "client-id": client}, PART, PART),
    st.builds(lambda ip: {"ip": ip}, st.none() | st.sampled_from(["10.0.0.1", "2001:db8::7"])),
).map(lambda parts: Entity.of(parts).text)
VALUES = st.sampled_from([1.0, 2.0, 1048576.0])


@st.composite
def states(draw: st.DrawFn) -> tuple[State, ...]:
    """Generate the desired, stored, verified and intended values of a few entities."""
    sides: list[dict[str, dict[str, float | None]]] = [{}, {}, {}, {}]
    for entity in draw(st.lists(ENTITIES, max_size=6, unique=True)):
        keys = [key for key in QUOTA_KEYS.values() if key.types >= set(Entity.parse(entity).types)]
        for key in draw(st.lists(st.sampled_from(keys), min_size=1, max_size=2, unique=True)):
            for side in sides:
                if draw(st.booleans()):
                    side.setdefault(entity, {})[key.name] = draw(VALUES)
    return tuple(sides)


@settings(max_examples=12, deadline=None)
@example(sides=({LOOKS_LIKE_DEFAULT: {"producer_byte_rate": 1.0}}, {}, {}, {}))
@given(sides=states())
def test_after_a_run_nothing_is_left_to_do(sides: tuple[State, ...], broker: RunningBroker) -> None:
    """Whatever the sides were, after one run the cluster matches Git and the ledger is complete."""
    desired, actual, verified, intended = sides
    with TemporaryDirectory() as root, open_lab(broker, Path(root)) as lab:
        lab.put(actual)
        lab.note(verified)
        lab.note(intended, INTENDED)
        lab.desire(desired)

        lab.run("reconcile")

        wanted = rows_of(desired)
        stored = rows_of(lab.stored())
        assert {row: value for row, value in stored.items() if row in wanted} == wanted
        assert stored.keys() - wanted.keys() <= rows_of(actual).keys()
        assert rows_of(lab.known()) == wanted
        left = lab.run("plan").differences()
        kinds = {("unmanaged", "report"), ("overriding", "report")}
        assert {(row.kind.value, row.action.value) for row in left} <= kinds
        assert rows_of(verified).keys().isdisjoint((row.entity, row.key) for row in left)
        assert rows_of(lab.known(INTENDED)) == {}
