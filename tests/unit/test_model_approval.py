"""A person's word on a plan: which plans need one, what it lets pass, how it is kept."""

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quota_ops.model.approval import (
    LARGE,
    Decision,
    Said,
    approve_command,
    needs_name,
    needs_person,
)
from quota_ops.model.difference import Action
from quota_ops.model.plan import GuardFinding, Plan
from quota_ops.model.policy import ApprovalPolicy
from tests.unit.test_model_plan import POLICY, plan, row

CHANGE = row("user=a", Action.SET, None, 1.0)
CUT = GuardFinding("cut", "user=a would fall")
OLGA = Decision(Said.APPROVED, plan([CHANGE]).digest, ("cut",), "olga", "now", "agreed", "run-1")
words = st.text(max_size=8)


def judged(policy: ApprovalPolicy, *guards: GuardFinding, writes: bool = True) -> Plan:
    """A plan under a policy, with what guards say of it."""
    rows = [CHANGE] if writes else []
    return plan(rows, policy=replace(POLICY, approval=policy), guards=guards)


@pytest.mark.parametrize(
    ("made", "needed"),
    [
        (judged(ApprovalPolicy.NEVER, CUT), False),
        (judged(ApprovalPolicy.ON_BREACH), False),
        (judged(ApprovalPolicy.ON_BREACH, CUT), True),
        (judged(ApprovalPolicy.ON_BREACH, CUT, writes=False), True),
        (judged(ApprovalPolicy.ON_BREACH, replace(CUT, allowed="yes")), False),
        (judged(ApprovalPolicy.ALWAYS), True),
        (judged(ApprovalPolicy.ALWAYS, replace(CUT, allowed="yes")), True),
        (judged(ApprovalPolicy.ALWAYS, writes=False), False),
        (judged(ApprovalPolicy.ALWAYS, CUT, writes=False), True),
    ],
)
def test_which_plans_need_a_person(made: Plan, *, needed: bool) -> None:
    """The policy decides; what a guard refuses counts also where nothing is written."""
    assert needs_person(made) is needed


@pytest.mark.parametrize(
    ("made", "needed"),
    [
        (plan([CHANGE] * (LARGE - 1)), False),
        (plan([CHANGE] * LARGE), True),
        (plan([CHANGE], guards=(CUT,)), True),
        (plan([CHANGE], guards=(replace(CUT, allowed="yes"),)), True),
    ],
)
def test_which_plans_need_the_name_of_the_cluster(made: Plan, *, needed: bool) -> None:
    """A large plan and one that a guard warns of are not approved by a key that slips."""
    assert needs_name(made) is needed


def test_the_command_that_approves() -> None:
    """It names the whole digest, and a reason where a person decides."""
    free, blocked = judged(ApprovalPolicy.ON_BREACH), judged(ApprovalPolicy.ON_BREACH, CUT)
    command = f"quota-ops reconcile --run '/a b' --approve {free.digest}"
    assert approve_command("/a b", free) == command
    assert approve_command("/a b", blocked) == f"{command} --reason TEXT"


@pytest.mark.parametrize(
    ("decision", "guards", "allowed"),
    [
        (OLGA, (CUT,), True),
        (OLGA, (), True),
        (OLGA, (CUT, GuardFinding("went_back", "an old commit")), False),
        (OLGA, (GuardFinding("went_back", "an old commit", "a reason"),), True),
        (replace(OLGA, digest="other"), (), False),
        (replace(OLGA, said=Said.REJECTED), (), False),
        (replace(OLGA, said=Said.NOTHING), (), False),
    ],
)
def test_what_an_approval_allows(
    decision: Decision, guards: tuple[GuardFinding, ...], *, allowed: bool
) -> None:
    """The plan of its digest, unless a guard asks that did not ask then."""
    assert decision.allows(plan([CHANGE], guards=guards)) is allowed


@given(st.builds(Decision, st.sampled_from(Said), words, st.lists(words).map(tuple), *[words] * 4))
def test_a_decision_keeps_its_way_through_json(decision: Decision) -> None:
    """What approval.json holds is the decision again, field for field."""
    assert Decision.from_json(json.loads(json.dumps(decision.as_json()))) == decision
    nobody = replace(decision, by=None)
    assert Decision.from_json(nobody.as_json()) == nobody


@pytest.mark.parametrize(
    "damage", [{"said": "maybe"}, {"digest": 1}, {"by": 1}, {"guards": [1]}, {"guards": None}]
)
def test_what_is_no_decision_is_refused(damage: dict[str, Any]) -> None:
    """A damaged file never approves anything."""
    with pytest.raises((KeyError, TypeError, ValueError)):
        Decision.from_json(OLGA.as_json() | damage)
