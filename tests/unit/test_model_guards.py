"""The findings of guards by cases; tests/cases/guards explains the format."""

from math import inf
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from quota_ops.model.plans.client_effects import InventoryEffects, OwnerEffects
from quota_ops.model.plans.effect import Risk
from quota_ops.model.plans.guard import (
    OF_ALTER,
    Guard,
    GuardFinding,
    format_blocking,
    unknown_guards,
)
from quota_ops.model.plans.guard_rules import EarlierRuns, is_blocked_by, judge, judge_alteration
from quota_ops.model.plans.policy import ApprovalPolicy, DriftPolicy, GuardThresholds, Policy
from quota_ops.model.plans.strict_policy import Grounds
from quota_ops.model.quotas.difference import WRITES, Action, Difference, Kind
from quota_ops.model.quotas.entity import USER
from quota_ops.model.quotas.filter import EntityFilter, FilterPart, Match
from quota_ops.model.quotas.owners import Owner, OwnerChange, OwnerIndex
from quota_ops.model.quotas.rows import Key
from quota_ops.model.stored import from_json, to_json
from quota_ops.model.usage.throttling import CutUse, Delays, Throttling
from quota_ops.precedence.effects import Ownership, find_write_effects
from quota_ops.report.outline.sentences import describe_owner_changes
from tests.unit.report_sample import PLAN
from tests.yaml_cases import load_yaml

KEY = "producer_byte_rate"
CASES: tuple[Any, ...] = tuple(
    pytest.param(case, id=f"{path.stem}: {case['case']}")
    for path in sorted((Path(__file__).parents[1] / "cases" / "guards").glob("*.yaml"))
    for case in load_yaml(path.read_text())
)


def difference(row: dict[str, Any]) -> Difference:
    """Convert a row of a case to a difference."""
    before, after = (
        None if row.get(one) is None else float(row[one]) for one in ("before", "after")
    )
    action = Action(row.get("action", "clear" if after is None else "set"))
    who = row["who"]
    return Difference(
        "id",
        who if "=" in who else f"user={who}",
        row.get("key", "producer_byte_rate"),
        Kind(row["kind"]),
        action,
        before,
        after,
        None if "verified" not in row else float(row["verified"]),
        row.get("owner"),
        *(None,) * 8,
        memory=row.get("memory"),
        is_return=row.get("is_return"),
        returns_to=None if "returns_to" not in row else float(row["returns_to"]),
    )._replace(run="run-1")


def policy_of(case: dict[str, Any]) -> Policy:
    """Return the policy of a case."""
    return Policy(
        "demo",
        "id",
        "demo",
        drift=DriftPolicy(case.get("drift", "repair")),
        approval=ApprovalPolicy(case.get("approval", "on_breach")),
        guards=GuardThresholds(**{"small_byte_rate": 0.0} | case.get("guards", {})),
        **case.get("policy", {}),
    )


def risks_of(case: dict[str, Any], rows: list[Difference]) -> dict[Key, Risk]:
    """Return the risks of a case's rows beside the other quotas that the cluster stores."""
    stored = [
        (entity, "producer_byte_rate", float(value))
        for entity, value in case.get("stored", {}).items()
    ]
    before = {(one, "producer_byte_rate"): owner for one, owner in case.get("of", {}).items()}
    owners = OwnerIndex(tuple(Owner(**one) for one in case.get("owners", [])))
    writes = [row for row in rows if row.action in WRITES]
    ownership = Ownership(before, {row.id: row.owner for row in rows}, owners)
    effects = find_write_effects(stored, writes, ownership)
    return {row: effect.risk for row, effect in effects.items()}


def earlier_runs_of(case: dict[str, Any]) -> EarlierRuns:
    """Return what the ledger of a case knows."""
    owned = case.get("owned", {})
    was = None
    if "was" in case:
        values = to_json(Policy, policy_of(case)) | case["was"]
        values["guards"] = values["guards"] | case.get("were", {})
        was = from_json(Policy, values)
    commits = tuple(case.get("commits", ()))
    later = case.get("overtaken by"), case.get("ledger")
    others = None
    if "others" in case:
        values = to_json(Policy, policy_of(case))
        others = tuple(
            from_json(Policy, values | {**one, "guards": values["guards"] | one.get("guards", {})})
            for one in case["others"]
        )
    return EarlierRuns(
        sum(owned.values()), owned, was, commits, *later, others, lacks=case.get("lacks")
    )


def clients_of(case: dict[str, Any]) -> InventoryEffects | None:
    """Return an inventory of which some clients lose."""
    if "clients" not in case:
        return None
    nobody = OwnerEffects("team", *[0] * 11)
    if isinstance(case["clients"], str):
        return InventoryEffects("clients.csv", (), trouble=case["clients"])
    every, losing = case["clients"]
    half = nobody._replace(clients=1, losing=min(1, losing), cut=min(1, losing))
    rest = nobody._replace(owner=None, clients=every - 1, losing=losing - half.losing)
    return InventoryEffects("clients.csv", (half, rest))


def throttling_of(case: dict[str, Any]) -> Throttling | None:
    """Return what was found for the cuts of a case."""
    found = case.get("throttled")
    if found is None:
        return None
    if isinstance(found, str):
        cuts = tuple(CutUse(f"user={row['who']}", KEY, why="unknown") for row in case["rows"])
        return Throttling(7, "2026-11-26T00:00:00Z", cuts, found)
    seen = case.get("seen", 1.0)
    cuts = tuple(
        CutUse(f"user={who}", KEY, (Delays(f"user={who}", "1", 0, 60 * use, 1, 0, 1, seen),))
        if not isinstance(use, str)
        else CutUse(f"user={who}", KEY, why=use)
        for who, use in found.items()
    )
    return Throttling(7, "2026-11-26T00:00:00Z", cuts)


def said(finding: GuardFinding) -> tuple[str, str]:
    """Return a finding in the form that the cases use."""
    return finding.guard, finding.message


@pytest.mark.parametrize("case", CASES)
def test_guards_speak(case: dict[str, Any]) -> None:
    """Each guard that a case names has its finding, and no other guard has one.

    The rows that a guard blocks are known, and are as many as its finding counts.
    """
    rows = [(row["who"], difference(row)) for row in case.get("rows", [])]
    risks, earlier = risks_of(case, [row for _, row in rows]), earlier_runs_of(case)
    grounds = Grounds(policy_of(case), earlier.policies, throttling_of(case))

    findings = judge(
        [row for _, row in rows if row.action in WRITES],
        policy=grounds.policy,
        commit=case.get("commit"),
        desired=case.get("desired", 10),
        earlier=earlier,
        clients=clients_of(case),
        throttling=grounds.throttling,
        risks=risks,
    )

    expected = [*case.get("says", {}).items(), *case.get("also", {}).items()]
    assert sorted(map(said, findings)) == sorted(expected)
    about = {
        guard.value: [
            who for who, row in rows if is_blocked_by(guard, row, grounds, risks.get(row.id))
        ]
        for guard in Guard
    }
    assert about | case.get("about", {}) == about
    per_owner = Guard.OWNER_REMOVED
    assert {one.guard: len(about[one.guard]) for one in findings if one.guard != per_owner} == {
        one.guard: one.rows for one in findings if one.guard != per_owner
    }


def test_a_name_that_is_no_guard_is_told() -> None:
    """The error for a misspelled guard suggests the right name."""
    assert unknown_guards(["takeover", "take_over", "cut", ""]) == ("take_over", "")


def test_the_error_of_guards_names_each_override() -> None:
    """An error lists the findings, and one command line that overrides all of them."""
    found, remedy = format_blocking([GuardFinding("cut", "a"), GuardFinding("drift", "b")])

    assert found == "cut: a; drift: b"
    assert remedy == "Nothing was written. To override: --allow cut --allow drift --reason TEXT"


def test_the_error_of_guards_shows_the_repairs_that_are_made() -> None:
    """If a run repairs drift although guards block the rest, the error does not deny it."""
    _, remedy = format_blocking([GuardFinding("cut", "a")], "user=a k and 1 more")
    assert remedy == (
        "A run writes only repairs of drift, user=a k and 1 more; all other changes wait. "
        "To override: --allow cut --reason TEXT"
    )


def test_a_one_off_change_is_judged_as_a_plan_is() -> None:
    """An alter takes the path of a plan, by the stricter policy; other guards have a reason."""
    rows = (
        {"who": "alice", "kind": "unmanaged", "before": 1000, "after": 1},
        {"who": "bob", "kind": "unmanaged", "before": 1, "after": 1_000_000},
        {"who": "carol", "kind": "unmanaged", "before": 1000, "after": 2.0**63},
        {"who": "user=<default>", "kind": "unmanaged", "before": 1000, "after": 900},
    )
    writes = [difference(row)._replace(action=Action.SET) for row in rows]
    writes += [
        difference({"who": name, "kind": "removed", "before": 1000})._replace(kind=Kind.UNMANAGED)
        for name in "vwxyz"
    ]
    policy = policy_of({"guards": {"small_byte_rate": 10.0, "removals": 9}})
    applied = policy_of({"guards": {"removals": 4}, "drift": "ask"})

    found = [finding.guard for finding in judge_alteration(writes, policy, applied, {})]

    assert found == ["removals", "cut", "raise", "unlimited", "small_limit", "default_touched"]
    assert {*found, "unprotected"} == set(OF_ALTER)
    assert {str(guard) for guard in Guard if not guard.not_alter} == set(OF_ALTER)


def test_a_one_off_change_outside_the_applied_scope_is_blocked() -> None:
    """A branch cannot widen `scope` for an alter; clear_unmanaged is about what runs clear."""
    scope = (EntityFilter((FilterPart(USER, Match.EXACT, "alice"),)),)
    policy = policy_of({"policy": {"clear_unmanaged": True}})
    writes = [
        difference({"who": who, "kind": "unmanaged", "before": 10}) for who in ("alice", "bob")
    ]
    words = "user=bob producer_byte_rate would change, although excluded by the last applied policy"

    found = judge_alteration(writes, policy, policy_of({"policy": {"scope": scope}}), {})

    assert [*map(said, found)] == [("unprotected", words)]


@pytest.mark.parametrize(("commit", "blocked"), [("rollback of run-1", True), ("aaaaaaa", False)])
def test_a_lost_policy_blocks_only_a_rollback(commit: str, *, blocked: bool) -> None:
    """A rollback reads no cluster.yaml, so it knows neither what is protected nor the numbers."""
    write = difference({"who": "alice", "kind": "pending", "after": 10})
    earlier = EarlierRuns(1, {}, None, (), old_ledger="no ledger")

    found = judge(
        [write], policy=policy_of({}), commit=commit, desired=1, earlier=earlier, risks={}
    )

    words = "it is unknown what the last applied cluster.yaml protects, and its thresholds"
    says = [("unprotected", f"{words}: no ledger")] if blocked else []
    assert [said(finding) for finding in found] == says


def test_quotas_that_get_another_owner_need_approval() -> None:
    """So no owner takes a quota over in one commit, and changes its value in the next."""
    changes = (
        OwnerChange("pay", "web", ("user=a", "user=b")),
        OwnerChange(None, "web", ("user=c",)),
    )
    earlier = EarlierRuns(2, {}, None, (), owner_changes=changes)

    def find(policy: Policy) -> list[tuple[str, str]]:
        found = judge((), policy=policy, commit=None, desired=3, earlier=earlier, risks={})
        return [(guard.guard, guard.message) for guard in found]

    plain = Policy("demo", "id", "demo")
    words = "user=a, user=b get another owner: pay -> web"
    assert find(plain) == [("foreign_owner", words)]
    assert find(replace(plain, owners=(Owner("web", users=("a", "b")),))) == []


def test_a_change_of_owner_that_no_guard_blocks_is_a_warning() -> None:
    """Also if a guard blocks one with a longer name, whose text contains that of the other."""
    free = OwnerChange("x", "pay", ("user=a",))
    blocked = OwnerChange("x", "payments", ("user=a",))
    policy = Policy("demo", "id", "demo", owners=(Owner("pay", users=("a",)),))
    earlier = EarlierRuns(2, {}, None, (), owner_changes=(free, blocked))
    guards = judge((), policy=policy, commit=None, desired=3, earlier=earlier, risks={})
    plan = replace(PLAN, policy=policy, guards=guards)

    assert [guard.message for guard in guards] == [blocked.text.removesuffix(".")]
    assert [*describe_owner_changes((free, blocked), plan)] == [free.text]


def test_pairs_of_one_user_rise_together() -> None:
    """Client ids that leave the limit of their user have the sum of their own limits."""
    stored = [("user=u", KEY, 100.0), ("user=<default>", KEY, 100.0)]
    values = {"user=u": 400.0, "user=v": inf}
    writes = [
        Difference(
            "id",
            f"client-id={name},{user}",
            KEY,
            Kind.DRIFTED if name == "old" else Kind.PENDING,
            Action.SET,
            before=None,
            after=value,
            verified=value if name == "old" else None,
        )
        for user, value in values.items()
        for name in ("a", "b", "c", "old")
    ]
    writes.append(
        Difference("id", "user=w", KEY, Kind.PENDING, Action.SET, before=None, after=200.0)
    )

    found = find_write_effects(stored, writes)

    rises = {row.entity: effect.risk.rise for row, effect in found.items()}
    assert rises == {
        **dict.fromkeys((f"client-id={name},user=u" for name in "abc"), 12.0),
        **dict.fromkeys((f"client-id={name},user=v" for name in ("a", "b", "c", "old")), 1.0),
        "client-id=old,user=u": 1.0,
        "user=w": 2.0,
    }
