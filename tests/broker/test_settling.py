"""A run with unknown rows is settled by another run: however it ended, and once."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest

from quota_ops.model.runs.outcome import Status
from quota_ops.runs.chain import RESUMED, run_stages
from quota_ops.stages.report.forms import write_reports
from quota_ops.store.run.claim import claim_run
from quota_ops.store.run.files import APPLIED, PLAN
from quota_ops.store.run.folder import RunFolder
from tests.broker.going_back import plan_back
from tests.broker.killing import die_before_verify, die_in_file, die_in_request
from tests.broker.stage_runs import KEY, outcomes
from tests.broker.test_dead_runs import begin, kill, listed, shown
from tests.broker.test_metrics import read_metrics
from tests.lab import Lab
from tests.writing import State, settle


def test_unknown_rows_of_a_run_that_ended(lab: Lab) -> None:
    """The next run settles a run that ended by itself like one that died, once."""
    begin(lab)
    run = lab.planned(connect=lambda: Cut(lab.cluster))
    with pytest.raises(KeyboardInterrupt):
        run_stages(run, RESUMED[:1])
    write_reports(run.folder)
    assert set(outcomes(run.folder).values()) == {Status.UNKNOWN}
    settle(lab.cluster)
    open_rows = {("unknown: not confirmed", 1.0, 10.0, None, None)}
    assert read_changes(lab, "user=a0") == open_rows

    by = lab.run("reconcile").place.name

    assert read_changes(lab, "user=a0") == {("set: found as sent", 1.0, 10.0, 10.0, by)}
    assert (
        f"1 B/s -> 10 B/s; 10 B/s found by {by}" in lab.call("history", "demo", "--changes").stdout
    )

    found = {(outcome.status, outcome.message) for outcome in run.folder.outcomes(APPLIED)}
    assert found == {(Status.ACCEPTED, f"found by run {by}")}
    assert run.folder.stage_result("apply").message == (
        f"interrupted by a signal\nRun {by} looked for the unknown rows."
    )
    assert (run.folder.place / "end-0002.json").exists()
    lab.run("reconcile")
    assert not (run.folder.place / "end-0003.json").exists()


def test_a_write_without_a_response_that_verify_read_back(lab: Lab) -> None:
    """A report counts it as made: it is not unknown beside brokers that all store the value."""
    begin(lab)
    planned = lab.planned(connect=lambda: Cut(lab.cluster))
    run = planned.folder
    with pytest.raises(KeyboardInterrupt):
        run_stages(planned, RESUMED[:1])
    settle(lab.cluster)
    assert lab.call("verify", "--run", str(run.place)).returncode == 0

    sentence = lab.call("show", "last").stdout.partition("\n")[0]
    assert sentence == (
        "demo matches the files, whose commit is unknown; apply was interrupted; 9 changes made by "
        "this run; 9 of 9 quotas in sync; 1 of 1 broker agrees."
    )
    rows = shown(lab, run)["rows"]
    found = {(row["status"], row["applied"]["message"]) for row in rows}
    assert found == {("changed", "found by verify")}
    assert listed(lab, run) == ("In sync", 9)


@pytest.mark.local_store
@pytest.mark.parametrize("die", [partial(die_in_file, str(APPLIED)), die_before_verify])
def test_what_a_killed_run_recorded_as_accepted_is_told_once(
    lab: Lab, die: Callable[..., None]
) -> None:
    """What the next run finds was written by the killed run: nobody set it outside Git."""
    before: State = {f"user={name}": {KEY: 1.0} for name in ("moved", "drifted", "left")}
    moved = {f"user={name}": {KEY: 2.0} for name in ("moved", "new")}
    after: State = {**moved, "user=drifted": before["user=drifted"]}
    lab.desire(before)
    lab.run("reconcile")
    lab.put({"user=drifted": {KEY: 7.0}})
    lab.desire(after)
    killed = kill(lab, die)
    finder = lab.run("reconcile")
    wrote = {("user=moved", "set"), ("user=new", "set"), ("user=left", "cleared")}
    assert list_changes(lab, killed, finder) == {
        (killed.place.name, *change) for change in (*wrote, ("user=drifted", "repaired"))
    }

    back = plan_back(lab, killed)
    digest = back.read_json(PLAN)["digest"]
    killed = kill(lab, die, ("reconcile", "--run", str(back.place), "--approve", digest))
    lab.desire({**before, "user=drifted": {KEY: 7.0}})
    finder = lab.run("reconcile")
    gone = {("user=moved", "rolled back"), ("user=left", "rolled back")}
    assert list_changes(lab, killed, finder) == {
        (back.place.name, *change)
        for change in (*gone, ("user=new", "rolled back: cleared"), ("user=drifted", "rolled back"))
    }


def list_changes(lab: Lab, *runs: RunFolder) -> set[tuple[str, str, str]]:
    """Return run, entity and what was done, of each change that some runs made or found."""
    told = json.loads(lab.call("history", "demo", "--changes", "--format", "json").stdout)
    names = {run.place.name for run in runs}
    changes = [(one["run"], one["entity"], one["what"]) for one in told["changes"]]
    return {change for change in changes if change[0] in names}


@pytest.mark.local_store
def test_two_runs_find_one_that_died(lab: Lab) -> None:
    """The first run to find it settles it; another leaves it alone while the first is running."""
    begin(lab)
    run = kill(lab, partial(die_in_request, 1, before=False))
    with claim_run(run):
        lab.run("reconcile")
        assert not (run.place / "end-0001.json").exists()

    lab.run("reconcile")
    assert (run.place / "end-0001.json").exists()
    assert listed(lab, run) == ("Interrupted", 3)


@pytest.mark.local_store
def test_metrics_have_no_counts_after_a_run_died(lab: Lab) -> None:
    """Counts from before the writes of a killed run are left out until a run compares again."""
    begin(lab)
    lab.call("report", "demo")
    assert read_metrics(lab)[("quotas_in_sync", "demo")] == 0
    kill(lab, partial(die_in_request, 2, before=False))

    found = read_metrics(lab)
    assert found.pop(("last_report_timestamp_seconds", "demo")) > 0
    assert found.pop(("last_success_timestamp_seconds", "demo")) > 0
    assert found == {("cluster_compared", "demo"): 0, ("last_apply_timestamp_seconds", "demo"): 0}

    lab.call("report", "demo")
    assert read_metrics(lab)[("quotas_in_sync", "demo")] == 6


def read_changes(lab: Lab, entity: str) -> set[tuple[Any, ...]]:
    """Return what was done to an entity, the values before, requested and found, and by whom."""
    command = ("history", "demo", "--changes", "--entity", entity, "--format", "json")
    names = ("what", "before", "requested", "found", "found_by")
    told = json.loads(lab.call(*command).stdout)["changes"]
    assert len(told) == 1, told
    return {tuple(change[name] for name in names) for change in told}


@dataclass
class Cut:
    """A cluster whose response to a write never comes, because a signal ends the run first."""

    cluster: Any

    def __getattr__(self, name: str) -> Any:
        return getattr(self.cluster, name)

    def apply(self, alterations: Any) -> None:
        """Send, and be interrupted."""
        self.cluster.apply(alterations)
        raise KeyboardInterrupt
