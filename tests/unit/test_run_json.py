"""A run's JSON files: read back unchanged, and rejected if damaged."""

import json
from collections.abc import Mapping
from math import isnan
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quota_ops.model.commit import CommitSource, Provenance
from quota_ops.model.difference import Action, Difference, Kind
from quota_ops.model.guard import GuardFinding
from quota_ops.model.outcome import Outcome, Status
from quota_ops.model.plan import Plan
from quota_ops.model.policy import Policy
from quota_ops.model.quota import json_number
from quota_ops.model.verification import BrokerResult, RowVerdict, Verdict
from quota_ops.store.run_json import (
    about_from_json,
    outcomes_from_json,
    outcomes_json,
    plan_from_json,
    plan_json,
    provenance_json,
    typed,
    verification_from_json,
    verification_json,
)

texts = st.text(st.characters(exclude_categories=["Cs"]))
maybe_text = st.none() | texts
numbers = st.none() | st.floats()
counts = st.integers(0, 2**31 - 1)
differences = st.builds(
    Difference,
    texts,
    texts,
    texts,
    st.sampled_from(Kind),
    st.sampled_from(Action),
    numbers,
    numbers,
    numbers,
    maybe_text,
    maybe_text,
    maybe_text,
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
    batch=counts,
    entity=texts,
    keys=st.lists(texts).map(tuple),
    status=st.sampled_from(Status),
    code=st.integers(-1, 127),
    error=maybe_text,
    message=maybe_text,
)
verdicts = st.builds(
    RowVerdict,
    texts,
    texts,
    numbers,
    st.sampled_from(Verdict),
    st.lists(st.tuples(counts, numbers), max_size=3).map(tuple),
)
answers = st.builds(BrokerResult, counts, texts, counts, st.none() | counts, maybe_text)


def through_json(value: Mapping[str, Any]) -> Any:
    """Return the value after a strict JSON round trip."""
    return json.loads(json.dumps(value, allow_nan=False))


def comparable(value: Any) -> Any:
    """Return the value with NaN written so that it equals itself."""
    if isinstance(value, tuple):
        return tuple(comparable(one) for one in value)
    return "NaN" if isinstance(value, float) and isnan(value) else value


@given(plans)
def test_a_plan_comes_back(plan: Plan) -> None:
    """A plan is read as it was written, infinities and NaN too, with the same digest."""
    found, digest = plan_from_json(through_json(plan_json(plan)))

    assert comparable(found.differences) == comparable(plan.differences)
    assert (found.policy, found.commit, found.guards) == (plan.policy, plan.commit, plan.guards)
    assert (found.desired, found.actual, found.batches) == (plan.desired, plan.actual, plan.batches)
    assert (found.ledger, found.digest, digest) == (plan.ledger, plan.digest, plan.digest)


@given(
    st.builds(
        Provenance,
        maybe_text,
        st.none() | st.sampled_from(CommitSource),
        st.lists(st.text()).map(tuple),
        maybe_text,
        maybe_text,
    )
)
def test_a_commit_comes_back(provenance: Provenance) -> None:
    """The commit of a run is read as it was written; an earlier release wrote less."""
    run = {"run": "r", "cluster": "demo", "started": "now"}

    found = about_from_json(through_json(run | provenance_json(provenance)))

    assert (found["provenance"], found["commit"]) == (provenance, provenance.commit)
    assert about_from_json(run | {"commit": "c1"})["provenance"] == Provenance("c1")


@given(st.lists(outcomes, max_size=3).map(tuple))
def test_outcomes_come_back(given_ones: tuple[Outcome, ...]) -> None:
    """Outcomes are read as they were written, in their order."""
    assert outcomes_from_json(through_json(outcomes_json(given_ones))) == given_ones


@given(st.lists(answers, max_size=2).map(tuple), st.lists(verdicts, max_size=2).map(tuple), counts)
def test_a_verification_comes_back(
    brokers: tuple[BrokerResult, ...], rows: tuple[RowVerdict, ...], verified: int
) -> None:
    """What brokers responded and store is read as it was written."""
    found = verification_from_json(through_json(verification_json(brokers, rows, verified)))

    assert comparable(found) == comparable((brokers, rows, verified))


@given(numbers)
def test_every_number_has_a_place_in_json(value: float | None) -> None:
    """JSON has no infinities and no NaN, so they are written as names."""
    written = json.loads(json.dumps(json_number(value), allow_nan=False))

    assert comparable(None if written is None else float(written)) == comparable(value)


PLAN = Plan(
    Policy("demo", "id", "demo"),
    "c0ffee",
    (Difference("id", "e", "k", Kind.PENDING, Action.SET, 1.0, 2.0, *(None,) * 10),),
    (),
    *(1, 1, 1),
    None,
)


@pytest.mark.parametrize("field", [one for one in plan_json(PLAN) if one != "applied_policy"])
def test_a_plan_without_a_field_is_no_plan(field: str) -> None:
    """A missing field is never invented."""
    values = through_json(plan_json(PLAN))
    del values[field]

    with pytest.raises(KeyError):
        plan_from_json(values)


@pytest.mark.parametrize(
    "damage",
    [
        {"digest": 1},
        {"desired": "10"},
        {"differences": [{"kind": "pending"}]},
        {"differences": [plan_json(PLAN)["differences"][0] | {"kind": "odd"}]},
        {"differences": [plan_json(PLAN)["differences"][0] | {"before": "ten"}]},
        {"differences": ["pending"]},
        {"guards": [{"guard": "cut"}]},
        {"policy": None},
    ],
)
def test_a_damaged_plan_is_no_plan(damage: dict[str, Any]) -> None:
    """Damage is an error that readers of a run handle."""
    with pytest.raises((AttributeError, KeyError, TypeError, ValueError)):
        plan_from_json(through_json(plan_json(PLAN)) | damage)


def test_a_value_of_another_type_is_named() -> None:
    """The error gives the found and the expected type."""
    assert typed("a", str | None) == "a"
    with pytest.raises(TypeError, match=r"^'a' is no int$"):
        typed("a", int)
