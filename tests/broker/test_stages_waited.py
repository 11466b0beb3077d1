"""A plan that waited for its approval while Git and the cluster changed."""

import json
from functools import partial

import pytest

from quota_ops.model.errors import Refused
from quota_ops.model.plans.ledger_edits import INTENDED
from quota_ops.runs.chain import CHAINS, RESUMED, run_stages
from quota_ops.sql import text
from quota_ops.store.run.files import PLAN
from quota_ops.store.run.folder import RunFolder
from tests.broker.going_back import plan_back, reconcile, run_at, write
from tests.broker.stage_runs import KEY, After
from tests.lab import Lab, error_of
from tests.writing import State

WHY = ("--reason", "agreed")
OLD: State = {"user=alice": {KEY: 10.0}}
NEW: State = {"user=alice": {KEY: 20.0}, "user=bob": {KEY: 5.0}}


def at_commit(lab: Lab, commit: str | None) -> RunFolder:
    """Return the folder of a new run at a commit."""
    return RunFolder.start(lab.store.new_run("demo"), cluster="demo", commit=commit)


def test_an_approval_that_waited_does_not_undo_a_newer_commit(lab: Lab) -> None:
    """Rows that a later commit declares stay, although the older plan was approved."""
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
    assert error.remedy == "Nothing was written. Make a new plan: quota-ops plan demo"
    assert lab.stored() == lab.known() == NEW


def test_a_plan_may_wait_while_nothing_else_is_applied(lab: Lab) -> None:
    """An approved plan is applied later, and again after its own end.

    It is not applied if the newest file of the ledger was changed since.
    """
    lab.desire(OLD)
    waiting = lab.resume(at_commit(lab, "c1"))
    run_stages(waiting, CHAINS["plan"])
    approved = waiting.folder.read_json(PLAN)["digest"]

    run_stages(lab.resume(waiting.folder, approve=approved), RESUMED)
    run_stages(lab.resume(waiting.folder, approve=approved), RESUMED)

    assert lab.stored() == lab.known() == OLD

    newest = max(lab.records.ledger.list())
    lab.records.ledger_end.replace(f"{newest} {'0' * 64}".encode())
    error = error_of(lab.resume(waiting.folder, approve=approved), RESUMED)
    assert isinstance(error, Refused)
    assert error.message == (
        f"{newest}, the newest file of the ledger, was changed since a run wrote it, in "
        f"{lab.records.ledger}"
    )


@pytest.mark.parametrize("commit", ["c1", None])
@pytest.mark.parametrize("left", [None, "00000001.parquet"])
def test_a_plan_whose_ledger_is_gone(lab: Lab, commit: str | None, left: str | None) -> None:
    """A plan is not applied if the ledger file that it was made from is gone.

    This applies to a lost ledger and to an older copy, with and without a commit.
    """
    lab.desire(OLD)
    run_stages(lab.resume(at_commit(lab, commit)), CHAINS["reconcile"])
    lab.desire(NEW)
    waiting = lab.resume(at_commit(lab, commit and "c2"))
    run_stages(waiting, CHAINS["plan"])
    for name in lab.records.ledger.list():
        if name != left:
            (lab.records.ledger / name).delete()

    approved = waiting.folder.read_json(PLAN)["digest"]
    error = error_of(lab.resume(waiting.folder, approve=approved), RESUMED)

    assert isinstance(error, Refused)
    assert error.message == (
        "the ledger that this plan was made from, 00000002.parquet, is no longer in "
        f"{lab.records.ledger}"
    )
    assert lab.stored() == OLD


def test_a_run_that_slept_while_another_commit_was_applied(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that slept does not send its remaining rows, which would undo the newer commit."""
    monkeypatch.setattr(text, "batches_text", partial(text.batches_text, max_keys=1))
    lab.desire(NEW)

    def newer() -> None:
        lab.desire(OLD)
        run_stages(lab.resume(at_commit(lab, "c2")), CHAINS["reconcile"])

    slept = lab.resume(at_commit(lab, "c1"), progress=After(1, newer))
    error = error_of(slept, CHAINS["apply"])

    assert isinstance(error, Refused)
    assert error.message == "1 of 2 entities done: commit c2 was applied since this plan was made"
    assert lab.stored() == lab.known() == OLD
    assert lab.known(INTENDED) == {}


def test_what_another_run_has_noted_since(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that stops for a later one removes its own intents, not those of the later one."""
    monkeypatch.setattr(text, "batches_text", partial(text.batches_text, max_keys=1))
    lab.desire(NEW)
    theirs: State = {"user=bob": {KEY: 7.0}}

    later: list[str] = []

    def another() -> None:
        lab.desire({**NEW, **theirs})
        later.append(lab.run("apply").place.name)
        lab.wait_for({**NEW, **theirs})

    error = error_of(lab.start(progress=After(1, another)), CHAINS["apply"])

    assert isinstance(error, Refused)
    assert error.message == (
        f"1 of 2 entities done: run {later[0]} began later, and has started to write"
    )
    assert lab.known(INTENDED) == {**NEW, **theirs}


def test_a_later_run_that_had_nothing_to_change(lab: Lab) -> None:
    """Git went back while a plan waited: the run that confirmed it is not overwritten."""
    reconcile(lab, OLD, "c1")
    lab.desire(NEW)
    waiting = lab.resume(at_commit(lab, "c2"))
    run_stages(waiting, CHAINS["plan"])
    lab.desire(OLD)
    later = at_commit(lab, "c1")
    run_stages(lab.resume(later), CHAINS["reconcile"])

    approved = waiting.folder.read_json(PLAN)["digest"]
    error = error_of(lab.resume(waiting.folder, approve=approved), RESUMED)

    assert error.message == (
        f"run {later.place.name} of commit c1 began later, and has started to apply"
    )
    assert lab.stored() == lab.known() == OLD


def test_a_later_run_of_the_same_values(lab: Lab) -> None:
    """A later run of the same values does not stop a waiting plan: both succeed."""
    lab.desire(OLD)
    waiting = lab.planned()
    lab.run("reconcile")

    run_stages(waiting, RESUMED)

    assert lab.stored() == lab.known() == OLD


def test_a_later_run_of_the_same_commit_that_repaired(lab: Lab) -> None:
    """The ledger has the commit that declared a repaired value first: that is not the run's."""
    reconcile(lab, OLD, "c1")
    both: State = {**OLD, "user=bob": {KEY: 7.0}}
    lab.put({entity: {KEY: 3.0} for entity in OLD})
    lab.desire(both)
    waiting = lab.resume(at_commit(lab, "c2"))
    run_stages(waiting, CHAINS["plan"])
    run_stages(lab.resume(at_commit(lab, "c2")), CHAINS["reconcile"])

    approved = waiting.folder.read_json(PLAN)["digest"]
    run_stages(lab.resume(waiting.folder, approve=approved), RESUMED)

    assert lab.stored() == lab.known() == both


def test_what_an_overtaken_run_repaired_is_also_wanted_later(lab: Lab) -> None:
    """A later commit changes another row: what the overtaken run repaired is nothing to correct."""
    git: State = {f"user={name}": {KEY: 10.0} for name in ("alice", "etl")}
    reconcile(lab, git, "c1")
    lab.put({"user=alice": {KEY: 30.0}})
    lab.desire({**git, "user=etl": {KEY: 1.0}})
    assert lab.call("reconcile", "demo", "--commit", "c2").returncode == 1
    waiting = lab.runs[-1]
    last: State = {**git, "user=etl": {KEY: 9.0}}
    reconcile(lab, last, "c3")
    digest = waiting.read_json(PLAN)["digest"]

    late = lab.call("reconcile", "--run", str(waiting.place), "--approve", digest, *WHY)

    assert (late.returncode, lab.stored()) == (1, last)
    assert "commit c3 was applied since this plan was made" in late.stdout + late.stderr
    shown = lab.call("show", f"demo/{waiting.place.name}").stdout
    assert "To correct them" not in shown
    assert "The later run takes precedence. How it ended: quota-ops runs" in shown, shown


def test_a_rollback_that_waited(lab: Lab) -> None:
    """A run in between that changed nothing does not stop the rollback of what it confirmed."""
    lab.put(OLD)
    lab.note(OLD)
    changed = reconcile(lab, NEW, "c1")
    planned = plan_back(lab, changed)
    run_at(lab, "c1")

    write(lab, planned)

    assert lab.stored() == OLD


def test_an_approval_after_another_run_repaired_another_row(lab: Lab) -> None:
    """Two runs repair, and the same cut waits: the earlier may be approved, and no drift is new."""
    git: State = {f"user={name}": {KEY: 10.0} for name in ("alice", "dan", "etl")}
    reconcile(lab, git, "c1")
    cut: State = {**git, "user=etl": {KEY: 1.0}}
    lab.desire(cut)
    names = []
    for name in ("user=alice", "user=dan"):
        lab.put({name: {KEY: 30.0}})
        assert lab.call("reconcile", "demo", "--commit", "c2").returncode == 1
        assert lab.stored() == git
        names.append(lab.runs[-1])
    digest = names[0].read_json(PLAN)["digest"]
    again = ("--run", str(names[0].place), "--approve", digest, *WHY)

    approved = lab.call("reconcile", *again)

    assert (approved.returncode, lab.stored()) == (0, cut), approved.stdout + approved.stderr
    assert lab.known() == cut
    quotas = json.loads(lab.call("history", "demo", "--format", "json").stdout)["quotas"]
    assert {row["entity"]: (row["drifts"], row["times_seen"]) for row in quotas} == {
        "user=alice": (1, 1),
        "user=dan": (1, 1),
    }
