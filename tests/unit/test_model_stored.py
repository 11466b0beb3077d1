"""Values of frozen classes are stored as JSON and read back unchanged, or not at all."""

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from math import inf, isnan
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct, defstruct

from quota_ops.model.clusters.cluster_facts import (
    Absent,
    BrokerFacts,
    ClusterFacts,
    KnownBrokers,
    Metadata,
)
from quota_ops.model.commit import CommitSource, Provenance
from quota_ops.model.finding import Finding, InvalidFile, Location, Silence
from quota_ops.model.history.past import Past
from quota_ops.model.plans.approval import Decision
from quota_ops.model.plans.client_effects import InventoryEffects, OwnerEffects
from quota_ops.model.plans.guard import GuardFinding
from quota_ops.model.plans.hold import Hold
from quota_ops.model.plans.plan import Plan
from quota_ops.model.plans.policy import (
    EVERYTHING,
    ApprovalPolicy,
    DriftPolicy,
    Freeze,
    GuardThresholds,
    Memory,
    Policy,
    RetiredBroker,
    VerifyPolicy,
)
from quota_ops.model.quotas.difference import Action, Difference, Kind
from quota_ops.model.quotas.filter import EntityFilter, FilterPart, Match
from quota_ops.model.quotas.rows import Key
from quota_ops.model.runs.outcome import Outcome, Status
from quota_ops.model.runs.rollback import Rollback, Undone
from quota_ops.model.runs.run import (
    About,
    Checked,
    Findings,
    Outcomes,
    Pruned,
    StoredPlan,
    Verification,
)
from quota_ops.model.runs.verification import BrokerResult, RowVerdict, Settlement, Verdict
from quota_ops.model.stored import from_json, to_json
from tests.unit.test_model_approval import OLGA
from tests.unit.test_model_hold import ALICE
from tests.unit.test_model_past import LOOKED, past

texts = st.text(st.characters(exclude_categories=["Cs"]))
maybe_text = st.none() | texts
numbers = st.none() | st.floats()
counts = st.integers(0, 2**31 - 1)
differences = st.builds(
    Difference,
    *(texts,) * 3,
    st.sampled_from(Kind),
    st.sampled_from(Action),
    *(numbers,) * 3,
    *(maybe_text,) * 3,
    st.none() | counts,
    *(maybe_text,) * 4,
)
plans = st.builds(
    Plan,
    policy=st.builds(Policy, texts, texts, texts),
    commit=maybe_text,
    differences=st.lists(differences, max_size=3).map(tuple),
    guards=st.lists(st.builds(GuardFinding, texts, texts, maybe_text), max_size=2).map(tuple),
    desired=counts,
    actual=counts,
    batches=counts,
    ledger=maybe_text,
)
outcomes = st.builds(
    Outcome,
    counts,
    texts,
    st.lists(texts).map(tuple),
    st.sampled_from(Status),
    st.integers(-1, 127),
    *(maybe_text,) * 2,
    st.none() | st.sampled_from(Status),
    st.booleans(),
)
verdicts = st.builds(
    RowVerdict,
    *(texts,) * 2,
    numbers,
    st.sampled_from(Verdict),
    st.lists(st.tuples(counts, numbers), max_size=3).map(tuple),
)
answers = st.builds(BrokerResult, counts, texts, counts, st.none() | counts, maybe_text)
ROW = Undone("user=a", "k", None, inf, None, verified=True, now=-inf, left="moved")
FINDING = Finding("QO105", "client-id=app", "request_percentage", "Never holds.", "Remove it.")
ANY_APP = EntityFilter((FilterPart("client-id", Match.EXACT, "app"), FilterPart("user", Match.ANY)))
POLICY = Policy(
    *("demo", "MkU3OEVBNTcwNTJENDM2Qg", "prod", "@daily"),
    scope=(ANY_APP,),
    drift=DriftPolicy.ASK,
    approval=ApprovalPolicy.ALWAYS,
    verify=VerifyPolicy.BOOTSTRAP,
    guards=GuardThresholds(cut_share=12.5),
    paused="a move",
    freeze=(Freeze("0 18 * * fri", "UTC", 3600, "the weekend"),),
    memory=Memory(1, 2),
    retired_brokers=(RetiredBroker(3, "scaled down"),),
)
RECORDS: list[tuple[Any, Any]] = [
    (Policy, POLICY),
    (Decision, OLGA),
    (Hold, ALICE),
    (Metadata, Metadata()),
    (
        Metadata,
        Metadata(
            led=True,
            seconds=((1, 0.0), (3, 12.5)),
            observers=(2, 3),
            answered=(1, 2),
            disagree=((3, 2),),
            absent=(Absent(3, "b:3", "is fenced"), Absent(4, None, "is missing", "scaled down")),
            complete=True,
            needless=((1, "is alive"),),
        ),
    ),
    (ClusterFacts, ClusterFacts((BrokerFacts(3, "[::1]:9092"),), "User:a", lacks_describe=True)),
    (
        ClusterFacts,
        ClusterFacts(
            (BrokerFacts(1, "b:1", "4.3", "com.example.Grouped", 3, 8),),
            "User:a",
            frozenset({"bob", "alice"}),
            frozenset({"User:bob", "User:*"}),
        ),
    ),
    (Settlement, Settlement("r", {Key("a", "k"): 1.0, Key("b", "k"): inf, Key("c", "k"): None})),
    (KnownBrokers, KnownBrokers((1, 2), {3: "run-8"})),
    (Rollback, Rollback("r", None, "d", "anna", "wrong", (ROW, ROW._replace(left=None)))),
    (Past, past(LOOKED, desired=inf, actual=1.0, trouble="not complete")),
    (InventoryEffects, InventoryEffects("c.csv", (OwnerEffects("pay", *range(11)),), "a1")),
    (Findings, Findings((FINDING, FINDING._replace(place=Location("team.yaml", 3))))),
    (Checked, Checked((), (), (InvalidFile("a.yaml", "search", 3, "It is empty.", 2),))),
    (Checked, Checked((FINDING,), (Silence("QO105", "later", None, Location("c.yaml", 3, 21)),))),
    (Pruned, Pruned("2026-11-21T10:00:00Z")),
    (
        About,
        About("r", "demo", "now", Provenance("c", CommitSource.COMPARED, ("a.yaml",), "b", None)),
    ),
]


def read_back(kind: Any, value: Any) -> Any:
    """Return a value after its way to a file and back."""
    return from_json(kind, json.loads(json.dumps(to_json(kind, value), allow_nan=False)))


def comparable(value: Any) -> Any:
    """Return the value with NaN written so that it equals itself."""
    if isinstance(value, tuple):
        return tuple(comparable(item) for item in value)
    return "NaN" if isinstance(value, float) and isnan(value) else value


@pytest.mark.parametrize(("kind", "record"), RECORDS)
def test_a_record_comes_back(kind: Any, record: Any) -> None:
    """What is stored is read as it was, infinities too, and each of its fields has to be there."""
    assert read_back(kind, record) == record
    for name in () if issubclass(kind, tuple) else kind.__match_args__:
        values = to_json(kind, record)
        del values[name]
        with pytest.raises(ValueError, match=f"missing required field `{name}`"):
            from_json(kind, values)


@given(plans)
def test_a_plan_comes_back(plan: Plan) -> None:
    """A plan is read as it was written, infinities and NaN too, with the same digest."""
    written = StoredPlan(**plan.head, digest=plan.digest, rows="the digest of its rows")
    stored = read_back(StoredPlan, written)
    found = Plan(**stored.head, differences=plan.differences, overridden=plan.overridden)

    rows = (comparable(found.differences), comparable(plan.differences))
    assert sorted(rows[0], key=str) == sorted(rows[1], key=str)
    assert stored.rows == "the digest of its rows"
    assert (found.policy, found.commit, found.guards) == (plan.policy, plan.commit, plan.guards)
    assert (found.desired, found.actual, found.batches) == (plan.desired, plan.actual, plan.batches)
    assert (found.ledger, found.digest, stored.digest) == (plan.ledger, plan.digest, plan.digest)


@given(st.lists(outcomes, max_size=3).map(tuple))
def test_outcomes_come_back(given_ones: tuple[Outcome, ...]) -> None:
    """Outcomes are read as they were written, in their order; no two files of them are equal."""
    assert read_back(Outcomes, Outcomes.of(given_ones)).outcomes == given_ones
    assert Outcomes.of(given_ones) != Outcomes.of(given_ones)


@given(st.lists(answers, max_size=2).map(tuple), st.lists(verdicts, max_size=2).map(tuple), counts)
def test_a_verification_comes_back(
    brokers: tuple[BrokerResult, ...], rows: tuple[RowVerdict, ...], verified: int
) -> None:
    """What brokers responded and store is read as it was written."""
    found = read_back(Verification, Verification("", verified, None, brokers, rows))

    assert comparable((found.brokers, found.verdicts, found.verified)) == comparable(
        (brokers, rows, verified)
    )


class Moment(Struct, frozen=True):
    """A time, a set and what may be missing."""

    at: datetime
    names: frozenset[str]
    either: str | None


def test_how_values_are_written() -> None:
    """Times are in UTC to the second, sets sorted, a row without what is usual, JSON complete."""
    moment = Moment(datetime(2026, 11, 21, 5, 12, 1, 9, UTC), frozenset("ba"), None)

    assert to_json(Moment, moment) == {
        "at": "2026-11-21T05:12:01Z",
        "names": ["a", "b"],
        "either": None,
    }
    assert to_json(tuple[Outcome, ...], (Outcome(1, "user=a", ("k",), Status.ACCEPTED),)) == [
        {"batch": 1, "entity": "user=a", "keys": ["k"], "status": "accepted"}
    ]
    assert to_json(Policy, Policy("a", "b", "c"))["scope"][0] == {
        "parts": [{"type": "user", "match": "any", "name": None}],
        "strict": True,
    }
    assert read_back(Policy, Policy("a", "b", "c")).scope == EVERYTHING


@pytest.mark.parametrize(
    ("kind", "values", "why"),
    [
        (Outcome, {"batch": "1", "entity": "", "keys": [], "status": "accepted"}, r"\$\.batch"),
        (Outcome, {"batch": 1, "entity": "", "keys": [1], "status": "accepted"}, r"\$\.keys\[0\]"),
        (Outcome, {"batch": 1, "entity": "", "keys": [], "status": "odd"}, r"\$\.status"),
        (Outcome, {"batch": 1, "more": 1}, "unknown field `more`"),
        (Undone, {"before": "ten"}, "ten"),
        (Metadata, {"led": "no"}, r"\$\.led"),
        (KnownBrokers, {"ids": [], "absent": [["3", "run"]]}, r"\$\.absent\[0\]"),
        (Policy, [], "object"),
    ],
)
def test_what_is_damaged_is_named(kind: Any, values: Any, why: str) -> None:
    """The error has the first field that is missing, unknown or of another type."""
    with pytest.raises(ValueError, match=why):
        from_json(kind, values)


def test_threads_read_a_type_for_the_first_time_together() -> None:
    """Threads that read files of a type which no one has read before get equal values."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(30):
            item = defstruct("Item", [(f"value_{i}", float | None) for i in range(30)])
            kind = defstruct("Kind", [(f"items_{i}", tuple[item, ...]) for i in range(10)])  # type: ignore[valid-type]
            value = kind(*[(item(*[1.0] * 30),)] * 10)
            values = to_json(kind, value)
            with ThreadPoolExecutor(8) as pool:
                assert list(pool.map(from_json, [kind] * 8, [values] * 8)) == [value] * 8
    finally:
        sys.setswitchinterval(interval)
