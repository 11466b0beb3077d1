"""Decisions come from their record alone, and count once, for a week, for the plan shown."""

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from getpass import getuser
from typing import Any

import pytest

from quota_ops.model.errors import GuardsRefused, Refused
from quota_ops.model.plans.approval import Author, Decision, DecisionKind
from quota_ops.model.plans.guard import Guard
from quota_ops.model.plans.plan import Plan
from quota_ops.model.stored import to_json
from quota_ops.runs.chain import CHAINS, RESUMED, run_stages
from quota_ops.stages import apply
from quota_ops.store.ledger.decisions import append, new_decision, record_use
from quota_ops.store.places.written_by import without_version
from quota_ops.store.run.files import APPROVAL, PLAN
from quota_ops.store.run.folder import RunFolder
from tests.lab import Lab, error_of
from tests.writing import State

KEY = "producer_byte_rate"
EVERYONE: State = {"user=<default>": {KEY: 20.0}}
ANNA = Author("anna", "robot")


def approves(lab: Lab, run: str) -> Callable[[Any], Decision]:
    """Return an approval of a run's plan by a person who was shown it."""

    def approve(plan: Any) -> Decision:
        folder = RunFolder(lab.store.root / "runs" / "demo" / run)
        return new_decision(folder, plan, DecisionKind.APPROVED, ANNA, "agreed")

    return approve


def record(lab: Lab) -> list[dict[str, Any]]:
    """Return the files of the record, in order, without the version that wrote them."""
    folder = lab.store.of_cluster(lab.cluster.cluster_id).approvals
    files = (json.loads((folder / name).read()) for name in sorted(folder.list()))
    return [without_version(values) for values in files]


def test_an_override_typed_into_a_run_folder(lab: Lab) -> None:
    """Neither plan.json nor approval.json overrides a guard: nothing is written."""
    lab.desire(EVERYONE)
    refused, _ = lab.refused("plan", allow={})
    plan = refused.read_json(PLAN)
    for guard in plan["guards"]:
        guard["allowed"] = "I said so"
    refused.write_json(PLAN, plan)
    decision = Decision(
        DecisionKind.OVERRIDDEN,
        plan["digest"],
        (),
        "mallory",
        "mallory",
        "2999-01-01T00:00:00Z",
        "I",
        "",
    )
    forged = to_json(Decision, decision) | {"run": refused.place.name, "shown": plan["guards"]}
    refused.write_json(APPROVAL, {"decisions": [forged]})

    run = lab.resume(refused, approve=plan["digest"], allow={})
    run_stages(lab.resume(refused, allow={}), ("validate",))
    error = error_of(run, ("apply",))

    assert isinstance(error, GuardsRefused)
    assert (lab.stored(), record(lab)) == ({}, [])


def test_an_override_is_recorded(lab: Lab) -> None:
    """An override is recorded with name, login, reason and guards, also in the run's end record."""
    lab.desire(EVERYONE)
    run = lab.start(allow={"default_touched": "agreed in PLAT-1"}, author=ANNA)
    run_stages(run, CHAINS["reconcile"])

    override, applied = record(lab)
    assert (override["said"], applied["said"]) == (DecisionKind.OVERRIDDEN, DecisionKind.APPLIED)
    names = ("by", "login", "reason", "run")
    assert [override[name] for name in names] == [
        "anna",
        "robot",
        "agreed in PLAT-1",
        run.folder.place.name,
    ]
    (shown,) = override["shown"]
    assert (shown["rows"], shown["message"][:14]) == (1, "user=<default>")
    end = run.folder.read_json("end-0001.json")
    assert end["decisions"] == [override]
    said = "anna (login robot) overrode default_touched of plan"
    assert said in (run.folder.place / "report.txt").read().decode()


def test_an_override_is_for_its_run(lab: Lab) -> None:
    """The same plan made by another run needs a new decision."""
    lab.desire(EVERYONE)
    lab.run("plan", allow={"default_touched": "a look"})

    _, error = lab.refused("reconcile", allow={})

    assert isinstance(error, GuardsRefused)
    assert lab.stored() == {}


@pytest.mark.each_store
def test_an_approval_is_spent(lab: Lab) -> None:
    """A cluster that changed and came back needs a new decision, though the digest is the same."""
    lab.desire(EVERYONE, approval="always")
    run = lab.start(allow={})
    asked: list[str] = []

    def approve(plan: Any) -> Decision:
        asked.append(plan.digest)
        return approves(lab, run.folder.place.name)(plan)

    run = lab.resume(run.folder, allow={}, request_decision=approve)
    run_stages(run, CHAINS["reconcile"])
    assert lab.stored() == EVERYONE
    run_stages(lab.resume(run.folder, allow={}, approve=asked[0]), RESUMED)

    lab.put({"user=<default>": {KEY: None}})
    folder, error = lab.refused("reconcile", allow={})

    assert folder.read_json(PLAN)["digest"] == asked[0]
    assert isinstance(error, Refused)
    assert lab.stored() == {}


def test_an_approval_that_another_run_uses_first(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that was paused before it recorded its own use finds the approval spent."""
    lab.desire({"user=alice": {KEY: 10.0}}, approval="always")
    first, paused = lab.run("plan", allow={}), lab.run("plan", allow={})
    decision = approves(lab, first.place.name)(first.plan())
    append(lab.records.approvals, decision)

    def pause(folder: RunFolder, plan: Plan) -> tuple[Decision, ...]:
        monkeypatch.undo()
        run_stages(lab.resume(first, allow={}, approve=decision.digest), RESUMED)
        lab.put({"user=alice": {KEY: None}})
        return record_use(folder, plan)

    monkeypatch.setattr(apply, "record_use", pause)
    error = error_of(lab.resume(paused, allow={}, approve=decision.digest), RESUMED)

    assert "is not approved" in error.message
    assert lab.stored() == {}


def test_an_approval_of_a_plan_is_for_no_alter(lab: Lab) -> None:
    """An alter of the same quotas to the same values asks again."""
    alice: State = {"user=alice": {KEY: 100.0}}
    lab.desire(alice)
    lab.run("reconcile", allow={})
    lab.desire({"user=alice": {KEY: 10.0}}, paused="broker upgrade")
    folder = lab.refused("plan", allow={})[0]
    digest = folder.plan().digest
    approval = ("--approve", digest, "--reason", "agreed")
    lab.call("reconcile", "--run", str(folder.place), *approval)
    assert [said["digest"] for said in record(lab)] == [digest]

    ended = lab.call("alter", "demo", "--names", "user=alice", "--add", f"{KEY}=10")

    assert (ended.returncode, f"{Guard.CUT}: " in ended.stdout) == (1, True)
    assert lab.stored() == alice


@pytest.mark.parametrize(
    ("policy", "days", "counts"),
    [({}, 6, True), ({}, 8, False), ({"approval_valid_for": "5d"}, 6, False)],
)
def test_an_approval_expires(lab: Lab, policy: dict[str, Any], days: int, *, counts: bool) -> None:
    """After a week, or the time in cluster.yaml, the plan needs a new decision."""
    lab.desire({"user=alice": {KEY: 10.0}}, approval="always", **policy)
    planned = lab.run("plan", allow={})
    plan = planned.plan()
    decision = to_json(Decision, approves(lab, planned.place.name)(plan))
    at = datetime.now(UTC) - timedelta(days=days)
    folder = lab.store.of_cluster(lab.cluster.cluster_id).approvals
    text = json.dumps(decision | {"at": f"{at:%Y-%m-%dT%H:%M:%SZ}"})
    (folder / f"{plan.digest}-0001.json").create(text.encode())

    run = lab.start(allow={})
    if counts:
        run_stages(run, CHAINS["reconcile"])
        assert lab.stored() == {"user=alice": {KEY: 10.0}}
    else:
        assert "is not approved" in error_of(run, CHAINS["reconcile"]).message
        assert lab.stored() == {}


def test_a_commit_that_loosens_its_own_guards(lab: Lab) -> None:
    """A guard of the last applied policy blocks too, and its finding names that policy."""
    lab.desire({"user=alice": {KEY: 100.0}}, guards={"cut_share": 50})
    lab.run("reconcile")
    lab.desire({"user=alice": {KEY: 1.0}}, guards={"cut_share": 100}, approval="never")

    _, error = lab.refused("reconcile", allow={"policy_changed": "agreed"})

    assert "cut: user=alice producer_byte_rate would fall by more than 50 % (as last" in str(error)
    assert lab.stored() == {"user=alice": {KEY: 100.0}}


def test_a_login_is_noted_where_nobody_is_named(lab: Lab) -> None:
    """Without --by, an override is recorded with the login as the name."""
    lab.desire(EVERYONE)
    options = ("--allow", "default_touched", "--reason", "agreed")
    assert lab.call("reconcile", "demo", *options).returncode == 0
    override = record(lab)[0]
    assert (override["by"], override["login"]) == (getuser(), getuser())
