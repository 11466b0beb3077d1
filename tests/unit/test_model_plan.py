"""A plan as a value: its digest, its counts, and its order on screen."""

from collections.abc import Sequence
from math import inf, isfinite, nan
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from quota_ops.model.plans.effect import ClassEffect, Effect, Limit
from quota_ops.model.plans.guard import GuardFinding
from quota_ops.model.plans.plan import (
    Plan,
    change_share,
    digest,
    is_cut,
    matches_digest,
    rank_by_risk,
)
from quota_ops.model.plans.policy import ApprovalPolicy, DriftPolicy, GuardThresholds, Policy
from quota_ops.model.quotas.difference import WRITES, Action, Difference, Kind

POLICY = Policy("demo", "MkU3OEVBNTcwNTJENDM2Qg", "demo")
NOTHING = (None,) * 10


def row(
    entity: str,
    action: Action,
    before: float | None,
    after: float | None,
    kind: Kind = Kind.PENDING,
) -> Difference:
    """Return a difference with only the values that matter here."""
    return Difference("id", entity, "producer_byte_rate", kind, action, before, after, *NOTHING)


def plan(rows: Sequence[Difference], **fields: Any) -> Plan:
    """Return a plan of these rows."""
    values: dict[str, Any] = {
        "policy": POLICY,
        "commit": "c0ffee",
        "differences": tuple(rows),
        "guards": (),
        "desired": 10,
        "actual": 10,
        "batches": 1,
        "ledger": None,
    }
    return Plan(**values | fields)


numbers = st.floats(min_value=0, exclude_min=True) | st.just(nan)
rows = st.builds(
    row,
    st.sampled_from(["user=a", "user=b", "user=<default>"]),
    st.sampled_from(Action),
    st.none() | numbers,
    st.none() | st.floats(1, 2.0**53),
    st.sampled_from(Kind),
)
some_rows = st.lists(rows, min_size=1, max_size=5)


@given(some_rows, st.randoms(use_true_random=False))
def test_order_is_not_in_the_digest(differences: list[Difference], random: Any) -> None:
    """However the rows are sorted, it is one plan with one digest."""
    shuffled = random.sample(differences, len(differences))

    assert plan(shuffled).digest == plan(differences).digest


@given(some_rows, st.none() | st.text())
def test_what_travels_beside_is_not_in_the_digest(
    differences: list[Difference], text: str | None
) -> None:
    """Commit, folder name, owner, reason, line and counts may differ in the approved plan."""
    travelled = [
        difference._replace(owner=text, reason=text, file=text, commit=text, run=text, since=text)
        for difference in differences
        if difference.action in WRITES
    ]
    other = plan(travelled, commit=text, policy=replace(POLICY, cluster="x"), desired=3, ledger="1")

    assert other.digest == plan(differences).digest


@given(st.lists(rows, max_size=4), st.data())
def test_every_value_is_in_the_digest(differences: list[Difference], data: st.DataObject) -> None:
    """Another entity, key or value, or one row more or less, is another plan."""
    difference = row("user=a", Action.SET, 10.0, 20.0)
    change: dict[str, Any] = data.draw(
        st.sampled_from(
            [
                {"entity": "user=z"},
                {"key": "consumer_byte_rate"},
                {"before": 10.000000000000002},
                {"before": None},
                {"before": nan},
                {"after": 20.000000000000004},
                {"action": Action.CLEAR},
                {"action": Action.REPORT},
            ]
        )
    )

    changed = difference._replace(**change)
    assert plan([*differences, changed]).digest != plan([*differences, difference]).digest
    assert (
        plan([*differences, difference, difference]).digest
        != plan([*differences, difference]).digest
    )


@pytest.mark.parametrize(
    "changed",
    [
        {"cluster_id": "other"},
        {"connection": "other"},
        {"schedule": "@daily"},
        {"scope": ()},
        {"protect": POLICY.scope},
        {"drift": DriftPolicy.ASK},
        {"approval": ApprovalPolicy.ALWAYS},
        {"clear_unmanaged": True},
        {"guards": GuardThresholds(cut_share=51)},
        {"guards": GuardThresholds(raise_factor=11)},
        {"guards": GuardThresholds(small_byte_rate=1)},
        {"approval_valid_for": 60},
    ],
)
def test_the_policy_is_in_the_digest(changed: dict[str, Any]) -> None:
    """The policy under which a plan was judged is part of the approval."""
    assert digest(replace(POLICY, **changed), []) != digest(POLICY, [])


def test_the_digest_stays_what_it_was() -> None:
    """An approval that waits during an upgrade still names its plan."""
    differences = [row("user=a", Action.SET, None, 0.1), row("user=b", Action.CLEAR, nan, None)]

    assert plan(differences).digest == (
        "e50a786ffd8c345b2ca56d7f3a92b4bfd776564a40c30671b676def4ddeb92d2"
    )


@pytest.mark.parametrize(
    ("typed", "approved"),
    [
        ("ab12cd34ef" + "0" * 22, True),
        (" AB12CD34EF" + "0" * 22 + "\n", True),
        ("ab12cd34ef" + "0" * 54, True),
        ("ab12cd34ef" + "0" * 21, False),
        ("ab12cd34", False),
        ("ab12cd35ef" + "0" * 22, False),
        ("", False),
        ("ab12cd34ef" + "0" * 55, False),
    ],
)
def test_32_characters_name_a_digest(typed: str, *, approved: bool) -> None:
    """128 bits name a plan; fewer do not, because two plans that share them can be constructed."""
    assert matches_digest(typed, "ab12cd34ef" + "0" * 54) is approved


def test_people_read_first_what_can_hurt_most() -> None:
    """Overriding rows, cuts, also by new quotas, defaults, removals, raises, new rows, the rest.

    A row that changes nobody's limit comes after all that do, even if its value falls.
    """
    ordered = [
        row("user=z", Action.REPORT, 1.0, None, Kind.OVERRIDING),
        row("user=<default>", Action.SET, 100.0, 25.0),
        row("user=inf", Action.SET, inf, 9.0),
        row("user=nan", Action.SET, nan, 9.0),
        row("user=b", Action.SET, 100.0, 1.0),
        row("user=zz1", Action.SET, None, 2.0),
        row("user=zz2", Action.CLEAR, 100.0, None),
        row("user=c", Action.SET, 100.0, 99.0),
        row("client-id=<default>,user=a", Action.SET, None, 1.0),
        row("user=a", Action.CLEAR, 5.0, None),
        row("user=e", Action.SET, 100.0, 500.0),
        row("user=d", Action.SET, 100.0, 101.0),
        row("user=f", Action.SET, None, 7.0),
        row("user=covered", Action.SET, 100.0, 1.0),
        row("user=same", Action.SET, 100.0, 2.0),
        row("user=a", Action.RECORD, 1.0, 1.0),
        row("user=g", Action.REPORT, 1.0, None),
    ]
    default = Limit(100.0, "user=<default>", ("user",))
    lower, own = (Limit(2.0, f"user={name}", ("user",)) for name in ("<default>", "zz1"))
    classes = (
        ClassEffect(default, own, "user=zz1"),
        ClassEffect(default, lower, "user=zz2"),
        ClassEffect(own, default, "user=f"),
        ClassEffect(default, default, "user=same"),
    )
    effects = {
        clients.user: Effect((clients,), risk=clients.judge("producer_byte_rate"))
        for clients in classes
    }
    effects["user=covered"] = Effect(())
    shuffled = ordered[::-1]

    found = sorted(
        shuffled, key=lambda difference: rank_by_risk(difference, effects.get(difference.entity))
    )
    assert found == ordered


@given(rows, st.floats(0, 100))
def test_a_cut_is_a_fall(one: Difference, beyond: float) -> None:
    """A row is cut if its value falls by more than the limit, or from unlimited."""
    before, after = one.before, one.target

    if before is None or after is None:
        assert not is_cut(one, beyond)
    elif not isfinite(before):
        assert is_cut(one, beyond)
    else:
        assert is_cut(one, beyond) == (-change_share(one) > beyond)
        assert is_cut(one) == (after < before)


@pytest.mark.parametrize(
    ("before", "after", "share"),
    [(10.0, 5.0, -50.0), (10.0, 25.0, 150.0), (None, 5.0, 0.0), (0.0, 5.0, 0.0), (nan, 5.0, 0.0)],
)
def test_the_share_of_a_change(before: float | None, after: float, share: float) -> None:
    """The share of a change is in percent of the old value; None if there is nothing to compare."""
    assert change_share(row("user=a", Action.SET, before, after)) == share


def test_what_a_plan_counts() -> None:
    """Of ten rows in Git, two differ; a row that was only missing in the ledger is in sync."""
    made = plan(
        [
            row("user=a", Action.SET, None, 1.0),
            row("user=b", Action.REPORT, 2.0, 1.0, Kind.DRIFTED),
            row("user=c", Action.RECORD, 1.0, 1.0, Kind.IN_SYNC),
            row("user=d", Action.CLEAR, 1.0, None, Kind.REMOVED),
        ]
    )

    assert (made.in_sync, made.differs, [write.entity for write in made.writes]) == (
        8,
        True,
        ["user=a", "user=d"],
    )
    assert replace(made, overridden=3).in_sync == 5


@pytest.mark.parametrize(
    ("one", "differs"),
    [
        (row("user=a", Action.SET, None, 1.0), True),
        (row("user=a", Action.CLEAR, 1.0, None, Kind.REMOVED), True),
        (row("user=a", Action.REPORT, 1.0, 2.0, Kind.TAKEOVER), True),
        (row("user=a", Action.REPORT, 1.0, 2.0, Kind.DRIFTED), True),
        (row("user=a", Action.FORGET, None, None, Kind.GONE), True),
        (row("user=a", Action.FORGET, None, None, Kind.CLEARED), False),
        (row("user=a", Action.RECORD, 1.0, 1.0, Kind.IN_SYNC), False),
        (row("user=a", Action.REPORT, 1.0, None, Kind.UNMANAGED), False),
        (row("user=a", Action.REPORT, 1.0, None, Kind.OVERRIDING), False),
    ],
)
def test_when_a_cluster_is_not_what_git_says(one: Difference, *, differs: bool) -> None:
    """Rows that Git does not declare, or that only the ledger lacks, are no difference to it."""
    assert plan([one]).differs is differs


def test_a_plan_is_refused_by_guards_that_nobody_let_pass() -> None:
    """A finding with a reason blocks nothing."""
    cut, takeover = GuardFinding("cut", "falls"), GuardFinding("takeover", "was there", "agreed")

    assert plan([]).with_guards((cut, takeover)).refused == (cut,)


@pytest.mark.parametrize(
    ("guard", "approval", "entities"),
    [
        (None, ApprovalPolicy.ON_BREACH, []),
        ("cut", ApprovalPolicy.ON_BREACH, ["user=a"]),
        ("cut", ApprovalPolicy.ALWAYS, []),
        ("went_back", ApprovalPolicy.ON_BREACH, []),
    ],
)
def test_what_a_blocked_plan_repairs(
    guard: str | None, approval: ApprovalPolicy, entities: list[str]
) -> None:
    """It restores verified values, unless every plan needs approval or the plan is distrusted."""
    drifted = row("user=a", Action.SET, 1.0, 2.0, Kind.DRIFTED)._replace(verified=2.0)
    changed = row("user=b", Action.SET, 1.0, 2.0)
    guards = () if guard is None else (GuardFinding(guard, "words"),)
    blocked = plan([drifted, changed], guards=guards, policy=replace(POLICY, approval=approval))
    assert [repair.entity for repair in blocked.repairs] == entities
    approved = blocked.with_guards(tuple(replace(one, allowed="agreed") for one in guards))
    assert (approved.repairs, [row.entity for row in approved.undecided]) == ((), entities)
    assert {*blocked.waiting, *blocked.repairs} == {*(blocked.writes if blocked.refused else ())}
