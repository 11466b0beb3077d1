"""Late writes and returned quotas: what is shown, what blocks, and what ends their memory."""

import json
from collections.abc import Sequence

import pytest

from quota_ops.model.plans.ledger_edits import ALTERED, CLEARED, INTENDED, VERIFIED
from quota_ops.model.quotas.alteration import Alteration
from quota_ops.model.runs.outcome import EntityResponse
from quota_ops.runs.chain import CHAINS, run_stages
from quota_ops.runs.rollback import start_rollback
from quota_ops.store.ledger import ledger
from quota_ops.store.run.folder import RunFolder
from tests.lab import Lab
from tests.writing import State

KEY = "producer_byte_rate"
GIT: State = {"user=alice": {KEY: 20.0}, "user=bob": {KEY: 5.0}}
LATE: State = {"user=alice": {KEY: 15.0}}
BACK: State = {"user=carol": {KEY: 7.0}}
WHY = ("--reason", "a test", "--by", "anna")


@pytest.fixture(name="came_back")
def _came_back(lab: Lab) -> Lab:
    """Create a late write of alice's limit, and carol's again, which a run had cleared."""
    lab.desire({**GIT, **BACK})
    lab.run("reconcile")
    lab.desire(GIT)
    lab.run("reconcile")
    lab.note(LATE, INTENDED, run="run-a", sequence=1)
    lab.put({**LATE, **BACK})
    return lab


def kinds(lab: Lab, folder: RunFolder | None = None) -> dict[str, tuple[str, str]]:
    """Return kind and action by entity."""
    rows = (folder or lab.run("plan")).differences()
    return {row.entity: (row.kind.value, row.action.value) for row in rows}


def remembered(lab: Lab) -> list[tuple[str, str, float | None]]:
    """Return the remembered rows of the ledger."""
    rows = ledger.read(lab.records).rows
    return [(row.entity, row.state, row.value) for row in rows if row.state != VERIFIED]


def test_both_are_named_everywhere(came_back: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each command names them and the run, and none exits with 0; only a run repairs the one."""
    lab = came_back
    (cleared,) = {row.run for row in ledger.read(lab.records).rows if row.state == CLEARED}

    for command in ("plan", "report"):
        ended = lab.call(command, "demo")
        assert ended.returncode == 1
        rows = [line for line in ended.stdout.splitlines() if "user=" in line]
        assert any("late write" in row and "(late write of run run-a)" in row for row in rows)
        assert any("returned" in row and f"(cleared by run {cleared})" in row for row in rows)
        assert "\nreturned: user=carol" in ended.stdout
        assert "\nlate_write: " not in ended.stdout
    with monkeypatch.context() as patch:
        patch.setattr("quota_ops.stages.verify.brokers.compute_deadline", lambda _rows: 0.1)
        verified = lab.call("verify", "demo")
    assert verified.returncode == 1
    assert "Late writes of earlier runs: user=alice" in verified.stderr
    report = json.loads(lab.call("report", "demo", "--format", "json").stdout)
    assert report["counts"]["returned"] == 2
    assert report["answer"]["sentence"].startswith(
        "2 quotas on demo have the value of an earlier run again"
    )
    assert lab.stored() == {**GIT, **LATE, **BACK}
    ended = lab.call("reconcile", "demo")
    assert "restored 1 quota to the last verified value: user=alice " in ended.stdout
    assert "1 other change waits: user=carol " in ended.stdout
    assert (ended.returncode, lab.stored()) == (1, {**GIT, **BACK})


def test_verify_refuses_a_returned_row_alone(came_back: Lab) -> None:
    """Every broker stores what Git declares, and verify still does not exit with 0."""
    came_back.put(GIT)

    _, error = came_back.refused("verify")

    assert error.exit_code == 1
    assert error.message.startswith(
        f"1 quota that is not in Git came back: user=carol {KEY}, cleared by run "
    )


def test_a_run_repairs_the_one_and_clears_the_other_by_its_guard(came_back: Lab) -> None:
    """A run repairs a late write, and clears a returned row after an override; both are settled."""
    folder = came_back.run("reconcile", allow={"returned": "a test", "unlimited": "a test"})

    assert kinds(came_back, folder) == {
        "user=alice": ("late_write", "set"),
        "user=carol": ("returned", "clear"),
    }
    assert came_back.stored() == came_back.known() == GIT
    assert kinds(came_back) == {}
    assert folder.read_json("end-0001.json")["changed"] == 2


@pytest.mark.parametrize("drift", ["ask", "report"])
def test_a_late_write_needs_a_person_where_drift_does(came_back: Lab, drift: str) -> None:
    """The guard blocks under ask and report; once it is overridden, Git's value is set."""
    came_back.desire(GIT, drift=drift)
    allow = dict.fromkeys(("returned", "unlimited", "policy_changed"), "a test")

    _, error = came_back.refused("reconcile", allow=allow)

    assert error.exit_code == 1
    assert "late_write: user=alice" in error.message
    assert came_back.stored() == {**GIT, **LATE, **BACK}
    came_back.run("reconcile", allow={**allow, "late_write": "a test"})
    assert came_back.stored() == GIT


def test_release_ends_the_memory(came_back: Lab) -> None:
    """A released row is drift, or unmanaged: reported, and left alone."""
    ended = came_back.call("release", "demo", "--from-ledger", "--names", "user=carol", *WHY)
    assert (ended.returncode, ended.stderr) == (0, "")
    forgotten = "cleared  no longer remembered: if the value comes back, no run is named"
    assert forgotten in ended.stdout

    assert remembered(came_back) == [("user=alice", INTENDED, 15.0)]
    assert kinds(came_back)["user=carol"] == ("unmanaged", "report")


def test_adopt_ends_the_memory_of_clears(came_back: Lab) -> None:
    """An adopted row is managed, at that value; a write that may still arrive is remembered."""
    came_back.call("adopt", "demo", "--any", "user", *WHY)

    assert remembered(came_back) == [("user=alice", INTENDED, 15.0)]
    assert kinds(came_back) == {
        "user=alice": ("pending", "set"),
        "user=carol": ("removed", "clear"),
    }


def test_alter_of_that_very_value_is_not_late(came_back: Lab) -> None:
    """A person has set it, so it is drift, or unmanaged; another value ends no memory.

    The late write may still arrive again, so it is remembered with the number of the alter.
    """
    for name, value in (("alice", 15), ("carol", 7)):
        came_back.call("alter", "demo", "--names", f"user={name}", "--add", f"{KEY}={value + 1}")
        assert len(remembered(came_back)) == 2
    for name, value in (("alice", 15), ("carol", 7)):
        came_back.call("alter", "demo", "--names", f"user={name}", "--add", f"{KEY}={value}")

    assert remembered(came_back) == [("user=alice", ALTERED, 15.0)]
    assert kinds(came_back) == {
        "user=alice": ("drifted", "set"),
        "user=carol": ("unmanaged", "report"),
    }


def test_another_value_is_noted(came_back: Lab) -> None:
    """For a new quota where a run had cleared one, the report names that run."""
    came_back.put({**GIT, "user=carol": {KEY: 8.0}})

    folder = came_back.run("report")

    (row,) = folder.differences()
    assert (row.kind.value, row.action.value, row.memory) == ("unmanaged", "report", CLEARED)
    report = (folder.place / "report.txt").read().decode()
    assert f"(cleared by run {row.run})" in report


def test_a_rollback_gives_a_returned_row_back(came_back: Lab) -> None:
    """A rollback of such a clear makes the row unmanaged: it is left alone from then on."""
    cleared = came_back.run("reconcile", allow={"returned": "a test", "unlimited": "a test"})
    back = start_rollback(came_back.store, cleared, by="anna", reason="a test")

    run_stages(came_back.resume(back), (*CHAINS["rollback"], "apply", "verify", "report"))

    assert came_back.stored() == {**GIT, **LATE, **BACK}
    assert kinds(came_back)["user=carol"] == ("unmanaged", "report")


def test_memory_ends_by_time_once_the_value_is_gone(came_back: Lab) -> None:
    """Old values that are back are shown, however old; a run that does not find them forgets them.

    The periods are those of cluster.yaml.
    """
    old = "2020-01-01T00:00:00Z"
    came_back.note(LATE, INTENDED, run="run-a", sequence=1, at=old)
    came_back.note(BACK, CLEARED, at=old)
    assert kinds(came_back) == {
        "user=alice": ("late_write", "set"),
        "user=carol": ("returned", "clear"),
    }

    came_back.put({**GIT, **{entity: dict.fromkeys(limits) for entity, limits in BACK.items()}})
    came_back.run("reconcile")

    assert remembered(came_back) == []
    came_back.put({**LATE, **BACK})
    assert kinds(came_back) == {
        "user=alice": ("drifted", "set"),
        "user=carol": ("unmanaged", "report"),
    }


def test_two_runs_at_once_that_are_both_answered(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each replaces the other's intent, and neither write can still arrive: none is remembered."""
    lab.desire({"user=alice": {KEY: 20.0}})
    lab.run("reconcile")
    lab.desire(LATE)
    first, second = lab.planned(), lab.planned()
    write = lab.cluster.apply

    def write_after_the_first(alterations: Sequence[Alteration]) -> tuple[EntityResponse, ...]:
        monkeypatch.setattr(lab.cluster, "apply", write)
        run_stages(first, ("apply", "verify"))
        return write(alterations)

    monkeypatch.setattr(lab.cluster, "apply", write_after_the_first)
    run_stages(second, ("apply", "verify"))

    assert remembered(lab) == []
    assert lab.known() == LATE
