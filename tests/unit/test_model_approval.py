"""Approvals: which plans need one, which guards it overrides, and how it is stored."""

import os
import pwd
from datetime import UTC, datetime
from typing import Any

import pytest
from msgspec.structs import replace

from quota_ops.model.plans.approval import (
    LARGE,
    Decision,
    DecisionKind,
    approval_source,
    approve_command,
    find_login,
    mark_overridden,
    needs_approval,
    needs_cluster_name,
    select_valid_decisions,
)
from quota_ops.model.plans.guard import GuardFinding, describe_idle_guard
from quota_ops.model.plans.plan import Plan
from quota_ops.model.plans.policy import WEEK, ApprovalPolicy
from quota_ops.model.quotas.difference import Action
from quota_ops.model.stored import from_json, to_json
from tests.unit.test_model_plan import POLICY, plan, row

CHANGE = row("user=a", Action.SET, None, 1.0)
CUT = GuardFinding("cut", "user=a would fall", rows=1, subject="user=a")
NOW = "2026-11-21T09:00:00Z"
DIGEST = plan([CHANGE]).digest
OLGA = Decision(DecisionKind.APPROVED, DIGEST, (CUT,), "olga", "airflow", NOW, "agreed", "run-1")


def judged(policy: ApprovalPolicy, *guards: GuardFinding, writes: bool = True) -> Plan:
    """Return a plan under a policy, with the findings of its guards."""
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
    """The policy decides; a plan with a blocking guard needs approval even if it writes nothing."""
    assert needs_approval(made) is needed


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
    """A large plan, or one with a guard's finding, is approved by typing the cluster's name."""
    assert needs_cluster_name(made) is needed


def test_a_decision_without_a_time_zone() -> None:
    """A stored time without a zone is refused: nobody knows how long the decision is valid."""
    values = to_json(Decision, OLGA) | {"at": "2026-11-21T09:00:00"}

    with pytest.raises(ValueError, match="'2026-11-21T09:00:00' has no time zone"):
        from_json(Decision, values)


def test_a_decision_names_each_guard_that_was_shown_once() -> None:
    """A guard with several findings has one name in the sentence about who overrode it."""
    shown = (replace(CUT, guard="raise"), CUT, replace(CUT, subject="user=b"))

    assert replace(OLGA, shown=shown).guards == ("cut", "raise")


def test_the_command_that_approves() -> None:
    """The printed command has the whole digest, and --reason if the plan needs approval."""
    free, blocked = judged(ApprovalPolicy.ON_BREACH), judged(ApprovalPolicy.ON_BREACH, CUT)
    command = f"quota-ops reconcile --run '/a b' --approve {free.digest}"
    assert approve_command("/a b", free) == command
    assert approve_command("/a b", blocked) == f"{command} --reason TEXT"


@pytest.mark.parametrize(
    ("now", "shown", "seen"),
    [
        (CUT, (CUT,), True),
        (CUT, (), False),
        (CUT, (replace(CUT, guard="removals"),), False),
        (CUT, (replace(CUT, subject="other rows"),), False),
        (replace(CUT, share=10.0), (replace(CUT, share=10.0),), True),
        (replace(CUT, share=9.0), (replace(CUT, share=10.0),), True),
        (replace(CUT, share=11.0), (replace(CUT, share=10.0),), False),
        (replace(CUT, rows=2), (replace(CUT, rows=1),), False),
        (CUT, (replace(CUT, guard="removals"), CUT), True),
    ],
)
def test_which_findings_a_person_has_seen(
    now: GuardFinding, shown: tuple[GuardFinding, ...], *, seen: bool
) -> None:
    """The same guard with the same rows and no larger share; its wording and numbers may differ."""
    assert now.is_no_worse(shown) is seen
    assert mark_overridden([now], [replace(OLGA, shown=shown)]) == (
        replace(now, allowed="agreed" if seen else None),
    )


def test_the_last_decision_says_why() -> None:
    """If several decisions override a guard, the last one's reason is shown."""
    decisions = [OLGA, replace(OLGA, reason="agreed again")]
    assert [guard.allowed for guard in mark_overridden([CUT], decisions)] == ["agreed again"]


APPLIED = replace(OLGA, said=DecisionKind.APPLIED, shown=(), by=None, login=None, reason="")
OVERRIDE = replace(OLGA, said=DecisionKind.OVERRIDDEN)
REJECTED = replace(OLGA, said=DecisionKind.REJECTED)
OTHER = "run-2"


@pytest.mark.parametrize(
    ("record", "counts"),
    [
        ([], []),
        ([OLGA], [OLGA]),
        ([replace(OLGA, run=OTHER)], [replace(OLGA, run=OTHER)]),
        ([OLGA, REJECTED], []),
        ([REJECTED, OLGA], [OLGA]),
        ([OVERRIDE], [OVERRIDE]),
        ([replace(OVERRIDE, run=OTHER)], []),
        ([OLGA, APPLIED], [OLGA]),
        ([OLGA, replace(APPLIED, run=OTHER)], []),
        ([OLGA, replace(APPLIED, run=OTHER), OVERRIDE], [OVERRIDE]),
        ([OVERRIDE, OLGA, replace(APPLIED, run=OTHER)], [OVERRIDE]),
        ([replace(OLGA, at="2026-11-14T10:00:01Z")], [replace(OLGA, at="2026-11-14T10:00:01Z")]),
        ([replace(OLGA, at="2026-11-14T10:00:00Z")], []),
        ([replace(OLGA, said=DecisionKind.NOTHING)], []),
    ],
)
def test_what_counts_of_a_record(record: list[Decision], counts: list[Decision]) -> None:
    """Until rejected, applied by another run, or a week old; an override only for its own run."""
    now = datetime(2026, 11, 21, 10, tzinfo=UTC)
    found = select_valid_decisions(record, "run-1", now, ApprovalPolicy.ON_BREACH, WEEK)
    assert list(found) == counts
    never = select_valid_decisions(record, "run-1", now, ApprovalPolicy.NEVER, WEEK)
    assert list(never) == [count for count in counts if count.said is DecisionKind.OVERRIDDEN]


@pytest.mark.parametrize(
    "damage",
    [
        {"said": "maybe"},
        {"digest": 1},
        {"by": 1},
        {"login": 1},
        {"guards": ["cut"]},
        {"shown": [{"guard": 1, "message": ""}]},
        {"shown": [{}]},
    ],
)
def test_what_is_no_decision_is_refused(damage: dict[str, Any]) -> None:
    """A damaged decision is rejected, so it approves nothing."""
    with pytest.raises(ValueError, match=next(iter(damage))):
        from_json(Decision, to_json(Decision, OLGA) | damage)


def test_the_stricter_policy_asks() -> None:
    """A commit that removes the need for approvals needs one itself."""
    always = replace(POLICY, approval=ApprovalPolicy.ALWAYS)
    loosened = plan(
        [CHANGE], policy=replace(POLICY, approval=ApprovalPolicy.NEVER), applied_policy=always
    )

    assert needs_approval(loosened)
    assert approval_source(loosened) == "the last applied policy sets approval: always"
    assert approval_source(plan([CHANGE])) == "cluster.yaml sets approval: on_breach"


@pytest.mark.parametrize(
    ("allow", "words"),
    [
        ((), None),
        (("cut",), None),
        (
            ("cut", "removals", "removals"),
            "--allow removals: that guard did not block anything, so no override is recorded",
        ),
        (
            ("drift", "raise"),
            "--allow drift, raise: those guards did not block anything, so no override is recorded",
        ),
    ],
)
def test_an_override_of_a_guard_that_does_not_block(
    allow: tuple[str, ...], words: str | None
) -> None:
    """A guard in --allow that does not block is named, once."""
    assert describe_idle_guard(allow, [CUT]) == words


def test_the_login_is_that_of_the_effective_user(monkeypatch: pytest.MonkeyPatch) -> None:
    """No environment variable chooses the recorded login; a user id without a name is shown."""
    login = pwd.getpwuid(os.geteuid()).pw_name
    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.setenv(name, "cfo")
    assert find_login() == login
    monkeypatch.setattr(os, "geteuid", lambda: 2**31)
    assert find_login() == "uid 2147483648"
