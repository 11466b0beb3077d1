"""rollback: the way back is planned, judged, written and verified like any other change."""

from functools import partial
from typing import Any

import pytest

from quota_ops.model.errors import InvalidInput, Refused
from quota_ops.model.moment import iso_utc
from quota_ops.model.plans.approval import Decision, DecisionKind
from quota_ops.model.plans.plan import Plan
from quota_ops.runs.chain import run_stages
from quota_ops.store.run.files import APPLIED, ROLLBACK, VERIFICATION
from tests.broker.going_back import guards, kinds, plan_back, reconcile, run_at, write
from tests.lab import Lab
from tests.places import delete_all
from tests.writing import State

KEY, OTHER = "producer_byte_rate", "consumer_byte_rate"
BEFORE: State = {
    "user=raised": {KEY: 1000.0, OTHER: 5.0},
    "user=moved": {KEY: 10.0},
    "user=gone": {KEY: 5.0},
    "user=later": {KEY: 1.0},
    "user=stays": {KEY: 1.0},
}
AFTER: State = {
    "user=raised": {KEY: 1500.0, OTHER: 5.0},
    "user=moved": {KEY: 20.0},
    "user=new": {KEY: 7.0},
    "user=later": {KEY: 2.0},
    "user=stays": {KEY: 1.0},
}
WHY = ("--reason", "INC-31", "--by", "anna")


@pytest.mark.each_store
def test_a_run_is_taken_back(lab: Lab) -> None:
    """What it set, created and cleared is as before; a row that changed since is left and named."""
    reconcile(lab, BEFORE, "c1")
    run = reconcile(lab, AFTER, "c2")
    latest = reconcile(lab, {**AFTER, "user=later": {KEY: 3.0}, "user=more": {KEY: 1.0}}, "c3")
    lab.put({"user=moved": {KEY: 30.0}})

    planned = plan_back(lab, run)

    rows = planned.read(ROLLBACK).rows
    assert {row.entity: (row.now, row.left) for row in rows} == {
        "user=raised": (1500.0, None),
        "user=new": (7.0, None),
        "user=gone": (None, None),
        "user=moved": (30.0, "changed outside Git since"),
        "user=later": (3.0, f"run {latest.place.name} set it, commit c3"),
    }
    assert kinds(planned) == {
        "user=raised": "pending",
        "user=new": "removed",
        "user=gone": "pending",
    }
    done = write(lab, planned)
    assert lab.stored() == {
        "user=raised": {KEY: 1000.0, OTHER: 5.0},
        "user=gone": {KEY: 5.0},
        "user=moved": {KEY: 30.0},
        "user=later": {KEY: 3.0},
        "user=stays": {KEY: 1.0},
        "user=more": {KEY: 1.0},
    }
    report = done.read_json("report.json")
    assert report["answer"] == {
        "status": "Rolled back",
        "sentence": f"Rolled back: run {run.place.name} on demo; 3 changes made by this run; "
        "2 changes left unchanged; 1 of 1 broker agrees.",
    }
    assert report["counts"]["in_sync"] is None
    page = (done.place / "report.html").read().decode()
    assert "left unchanged: user=moved producer_byte_rate, now 30 B/s" in page
    assert "user=later" in (done.place / "report.txt").read().decode()


def test_what_the_next_run_makes_of_it(lab: Lab) -> None:
    """The ledger matches the cluster; the same commit is blocked, and its revert is in sync.

    While the rows are held, the same commit repairs drift of others, and is blocked afterwards.
    """
    reconcile(lab, BEFORE, "c1")
    run = reconcile(lab, AFTER, "c2")
    undone = write(lab, plan_back(lab, run))
    assert lab.stored() == lab.known() == BEFORE

    lab.desire(AFTER)
    back = f"commit c2 was applied before, and rollback of {run.place.name} after it"
    assert guards(run_at(lab, "c2", "plan"))["went_back"] == back
    rows = ("demo", "--run", undone.place.name)
    assert lab.call("hold", *rows, "--until", "12h", "--reason", "INC-31").returncode == 0
    lab.put({"user=stays": {KEY: 7.0}})
    repaired = reconcile(lab, AFTER, "c2")
    assert (kinds(repaired)["user=stays"], guards(repaired)) == ("drifted", {})
    assert lab.stored() == lab.known() == BEFORE
    assert lab.call("release", *rows).returncode == 0
    assert guards(run_at(lab, "c2", "plan"))["went_back"] == back
    merged = run_at(lab, "c3", "plan")
    assert "went_back" not in guards(merged)
    assert kinds(merged) == {
        "user=raised": "pending", "user=moved": "pending", "user=later": "pending",
        "user=new": "pending", "user=gone": "removed",
    }  # fmt: skip
    assert kinds(reconcile(lab, BEFORE, "c4")) == {}
    assert lab.stored() == lab.known() == BEFORE


def test_a_rollback_is_taken_back(lab: Lab) -> None:
    """A rollback is a run like others: rolling it back goes forward again."""
    reconcile(lab, BEFORE, "c1")
    run = reconcile(lab, AFTER, "c2")
    back = write(lab, plan_back(lab, run))

    write(lab, plan_back(lab, back))

    assert lab.stored() == lab.known() == AFTER
    assert kinds(reconcile(lab, AFTER, "c2")) == {}


def test_guards_judge_the_way_back(lab: Lab) -> None:
    """A cut needs approval on the way back too, and no other row of the cluster is included."""
    reconcile(lab, {"user=a": {KEY: 1000.0}}, "c1")
    run = reconcile(lab, {"user=a": {KEY: 5000.0}}, "c2")
    lab.desire({"user=a": {KEY: 5000.0}, "user=b": {KEY: 1.0}})

    refused = plan_back(lab, run, allow={})
    assert list(guards(refused)) == ["cut"]
    assert lab.stored() == {"user=a": {KEY: 5000.0}}
    write(lab, plan_back(lab, run, allow={"cut": "a test"}))
    assert lab.stored() == {"user=a": {KEY: 1000.0}}


def test_without_a_ledger_nothing_is_cleared(lab: Lab) -> None:
    """A row missing in the ledger is left if it would be cleared, and blocks if it would be set."""
    reconcile(lab, BEFORE, "c1")
    run = reconcile(lab, AFTER, "c2")
    delete_all(lab.records.ledger)

    planned = plan_back(lab, run)

    left = {row.entity: row.left for row in planned.read(ROLLBACK).rows}
    assert {entity: why for entity, why in left.items() if why} == {
        "user=new": "the ledger does not list it as managed"
    }
    assert {"takeover", "unprotected"} <= set(guards(planned))


@pytest.mark.parametrize("policy", [{"protect": [{"user": "gone"}]}, {"scope": [{"user": "new"}]}])
def test_what_the_last_policy_leaves_alone_stays(lab: Lab, policy: dict[str, Any]) -> None:
    """A quota that the run cleared is not set again for a user that no run may write now."""
    gone, new = {"user=gone": {KEY: 5.0}}, {"user=new": {KEY: 7.0}}
    reconcile(lab, {**gone, **new}, "c1")
    run = reconcile(lab, new, "c2")
    lab.desire(new, **policy)
    allow = ("--allow", "policy_changed", "--reason", "a test")
    assert lab.call("reconcile", "demo", *allow).returncode == 0

    planned = plan_back(lab, run)

    why = "protected" if "protect" in policy else "outside the scope"
    assert [(row.entity, row.left) for row in planned.read(ROLLBACK).rows] == [("user=gone", why)]
    assert planned.plan().writes == ()


def test_a_rollback_counts_what_an_owner_has_elsewhere(lab: Lab) -> None:
    """A ceiling of all quotas of an owner counts those that the rollback does not change."""
    ceilings = {"team": {"total": {KEY: 30.0}}}
    allow = ("--allow", "cut", "--allow", "policy_changed", "--reason", "a test")
    runs: list[str] = []
    for alice, bob in ((20.0, None), (5.0, None), (5.0, 20.0)):
        lab.desire(
            {"user=alice": {KEY: alice}} | ({"user=bob": {KEY: bob}} if bob else {}),
            ceilings=ceilings,
        )
        assert lab.call("reconcile", "demo", *allow).returncode == 0
        runs.append(lab.runs[-1].place.name)

    ended = lab.call("rollback", f"demo/{runs[1]}", "--reason", "INC-31")

    assert (ended.returncode, "above_ceiling: " in ended.stdout) == (1, True)


def test_an_approval_does_not_outlive_a_rollback(lab: Lab) -> None:
    """A plan that was approved and rolled back needs a new decision, at any commit."""
    agreed: dict[str, Any] = {"request_decision": partial(_approves, lab)}
    lab.desire({"user=a": {KEY: 1.0}}, approval="always")
    run_at(lab, "c1", **agreed)
    lab.desire({"user=a": {KEY: 2.0}}, approval="always")
    run = run_at(lab, "c2", **agreed)
    write(lab, plan_back(lab, run), **agreed)

    with pytest.raises(Refused, match="is not approved"):
        run_at(lab, "c3")
    assert lab.stored() == {"user=a": {KEY: 1.0}}
    run_at(lab, "c3", **agreed)
    assert lab.stored() == {"user=a": {KEY: 2.0}}


def _approves(lab: Lab, plan: Plan) -> Decision:
    now = iso_utc()
    newest = lab.runs[-1].place
    return Decision(
        DecisionKind.APPROVED, plan.digest, plan.guards, "anna", "anna", now, "agreed", newest.name
    )


@pytest.mark.parametrize(
    ("command", "missing", "message"),
    [
        ("reconcile", APPLIED, "wrote no changes of a plan"),
        ("apply", VERIFICATION, "was not verified"),
    ],
)
def test_what_is_not_sure_is_not_taken_back(
    lab: Lab, command: str, missing: str, message: str
) -> None:
    """A run that wrote nothing, or did not read it back, is refused, and creates no run."""
    lab.desire({"user=a": {KEY: 1.0}})
    run = lab.run(command)
    (run.place / missing).delete()

    ended = lab.call("rollback", "last", *WHY)

    assert (ended.returncode, message in ended.stderr) == (Refused.exit_code, True)
    assert len(lab.store.runs("demo")) == 1


def test_an_alter_is_not_rolled_back(lab: Lab) -> None:
    """After an `alter`, `rollback last` names its undoing, and the last run that wrote a plan."""
    lab.desire({"user=a": {KEY: 1.0}})
    planned = lab.run("reconcile")
    altered = lab.call("alter", "demo", "--names", "user=a", "--add", f"{KEY}=2", *WHY)
    assert altered.returncode == 0

    ended = lab.call("rollback", "last", *WHY)

    assert (ended.returncode, ended.stdout) == (Refused.exit_code, "")
    assert ended.stderr.endswith(
        f"--undo {lab.runs[-1].place.name}. The last run that wrote a plan: "
        f"quota-ops rollback demo/{planned.place.name}\n"
    )


def test_a_remedy_of_rollback_can_be_followed(lab: Lab) -> None:
    """If every response is missing, a verify settles nothing: the next run does, and is named."""
    lab.desire({"user=a": {KEY: 1.0}})
    run = lab.run("apply")
    applied = run.place / APPLIED
    applied.replace(applied.read().replace(b'"accepted"', b'"unknown"'))

    ended = lab.call("rollback", "last", *WHY)

    assert (ended.returncode, ended.stderr.splitlines()) == (
        Refused.exit_code,
        [
            f"run {run.place.name} does not know which of its changes were written",
            "  Let the next run settle it: quota-ops reconcile demo. Then roll back.",
        ],
    )


def test_a_rollback_run_reads_no_yaml(lab: Lab) -> None:
    """Check on its folder is refused, and diff joins its own rows again, so no other is cleared."""
    reconcile(lab, BEFORE, "c1")
    planned = plan_back(lab, reconcile(lab, AFTER, "c2"))
    before = kinds(planned)

    with pytest.raises(InvalidInput, match="rolls back a run"):
        run_stages(lab.resume(planned), ("check",))
    run_stages(lab.resume(planned), ("diff",))
    assert kinds(planned) == before
