"""A run store that another tool copies to a bucket, and back: every decision stays the same."""

import dataclasses
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from quota_ops.model.plans.approval import Author, Decision, DecisionKind
from quota_ops.model.quotas.tables import DIFFERENCES, HOLDS, LEDGER
from quota_ops.runs.chain import CHAINS, run_stages
from quota_ops.store.ledger.decisions import new_decision
from quota_ops.store.run.files import PLAN
from quota_ops.store.run.folder import RunFolder
from tests.cli.test_screens import KEY
from tests.lab import Lab, error_of
from tests.objects.aws import sync

BEFORE = {f"user={name}": {KEY: 1000.0} for name in ("alice", "bob", "carol", "dan")}
APPROVED = {**BEFORE, "user=alice": {KEY: 1100.0}}
AFTER = {"user=alice": {KEY: 1200.0}, "user=bob": {KEY: 1000.0}, "user=carol": {KEY: 1300.0}}
HOLD = ("--names", "user=carol", "--until", "1h", "--reason", "INC-31")


def reconcile_approved(lab: Lab) -> str:
    """Run a reconcile whose plan a person approves; return the digest."""
    run = lab.start()

    def approve(plan: Any) -> Decision:
        return new_decision(run.folder, plan, DecisionKind.APPROVED, Author("anna", "robot"), "ok")

    run_stages(replace(run, request_decision=approve), CHAINS["reconcile"])
    return str(run.folder.read_json(PLAN)["digest"])


def decisions(lab: Lab, digest: str, first: str) -> dict[str, Any]:
    """Return what the store decides: about an old approval, a plan with a hold, and a rollback."""
    lab.put({**BEFORE, "user=eve": {KEY: None}})
    lab.desire(APPROVED, approval="always")
    replayed = error_of(lab.start(approve=digest), CHAINS["reconcile"])
    lab.put({"user=alice": {KEY: 1100.0}, "user=bob": {KEY: 7.0}, "user=eve": {KEY: 5.0}})
    lab.desire(AFTER)
    planned, refused = lab.refused("plan", allow={})
    rolled = lab.call("rollback", first)
    newest = max(map(RunFolder, lab.store.runs("demo")), key=lambda run: run.about().sequence or 0)
    return {
        "replayed": replayed.message,
        "refused": refused.message,
        "tables": [planned.read_table(one).to_pylist() for one in (DIFFERENCES, LEDGER, HOLDS)],
        "plan": planned.read_json(PLAN),
        "rollback": (rolled.returncode, newest.read_json(PLAN)),
        "sequence": newest.about().sequence,
    }


def test_a_copied_store_decides_the_same(lab: Lab, address: str, tmp_path: Path) -> None:
    """Plan, guards, holds, used approvals, run numbers and rollbacks are as before."""
    lab.desire(BEFORE)
    first = lab.run("reconcile").place.name
    lab.desire(APPROVED, approval="always")
    digest = reconcile_approved(lab)
    assert lab.call("hold", "demo", *HOLD).returncode == 0
    local = tmp_path / "store"

    sync(str(local), address)
    moved = decisions(dataclasses.replace(lab, address=address), digest, first)

    assert decisions(lab, digest, first) == moved
    assert moved["sequence"] == 5
    assert moved["replayed"].endswith(f"plan {digest[:8]} is not approved")
    assert [row["entity"] for row in moved["tables"][2]] == ["user=carol"]
    kinds = {row["entity"]: row["kind"] for row in moved["tables"][0]}
    assert (kinds["user=bob"], kinds["user=dan"]) == ("drifted", "removed")

    sync(address, str(tmp_path / "back"))
    back = decisions(dataclasses.replace(lab, address=str(tmp_path / "back")), digest, first)
    assert back == {**moved, "sequence": 8}
