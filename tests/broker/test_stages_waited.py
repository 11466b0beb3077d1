"""A plan that waited for its approval while Git and the cluster went on."""

import shutil

from quota_ops.model.errors import Refused
from quota_ops.run_folder import PLAN, RunFolder
from quota_ops.stages.chain import CHAINS, RESUMED, run_stages
from tests.broker.stage_runs import KEY
from tests.lab import Lab, State, error_of

OLD: State = {"user=alice": {KEY: 10.0}}
NEW: State = {"user=alice": {KEY: 20.0}, "user=bob": {KEY: 5.0}}


def at_commit(lab: Lab, commit: str) -> RunFolder:
    """The folder of a new run at a commit."""
    return RunFolder.start(lab.store.new_run("demo"), cluster="demo", commit=commit)


def test_an_approval_that_waited_does_not_undo_a_newer_commit(lab: Lab) -> None:
    """Rows that a later commit asked for stay, although the older plan was approved as it is."""
    lab.put(NEW)
    lab.note({"user=alice": {KEY: 10.0}, "user=bob": {KEY: 5.0}})
    lab.desire(OLD)
    waiting = lab.resume(at_commit(lab, "c1"))
    run_stages(waiting, CHAINS["plan"])
    lab.desire(NEW)
    run_stages(lab.resume(at_commit(lab, "c2")), CHAINS["reconcile"])

    approved = waiting.folder.read_json(PLAN)["digest"]
    error = error_of(lab.resume(waiting.folder, approve=approved), RESUMED)

    assert isinstance(error, Refused)
    assert error.message == "commit c2 was applied since this plan was made"
    assert lab.held() == lab.known() == NEW


def test_a_plan_may_wait_while_nothing_else_is_applied(lab: Lab) -> None:
    """An approved plan is applied later, and again after its own end."""
    lab.desire(OLD)
    waiting = lab.resume(at_commit(lab, "c1"))
    run_stages(waiting, CHAINS["plan"])
    approved = waiting.folder.read_json(PLAN)["digest"]

    run_stages(lab.resume(waiting.folder, approve=approved), RESUMED)
    run_stages(lab.resume(waiting.folder, approve=approved), RESUMED)

    assert lab.held() == lab.known() == OLD


def test_a_plan_whose_ledger_is_gone(lab: Lab) -> None:
    """Nobody knows what was applied since: nothing is written before a new plan is made."""
    lab.desire(OLD)
    run_stages(lab.resume(at_commit(lab, "c1")), CHAINS["reconcile"])
    lab.desire(NEW)
    waiting = lab.resume(at_commit(lab, "c2"))
    run_stages(waiting, CHAINS["plan"])
    shutil.rmtree(lab.ledger_folder)

    approved = waiting.folder.read_json(PLAN)["digest"]
    error = error_of(lab.resume(waiting.folder, approve=approved), RESUMED)

    assert isinstance(error, Refused)
    assert error.message == (
        f"the ledger that this plan was made from is gone from {lab.ledger_folder}"
    )
    assert lab.held() == OLD
