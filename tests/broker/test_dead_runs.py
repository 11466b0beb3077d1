"""A run that is killed while it writes is shown truthfully, settled, and rolled back."""

import json
import signal
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from quota_ops.model.runs.outcome import Status
from quota_ops.runs.chain import RESUMED, run_stages
from quota_ops.store.run import claim
from quota_ops.store.run.claim import claim_run
from quota_ops.store.run.files import APPLIED, CLAIM, PLAN, ROLLBACK
from quota_ops.store.run.folder import RunFolder
from quota_ops.store.run.marks import is_marked, mark
from quota_ops.store.run.state import RunState
from tests.broker.going_back import plan_back, write
from tests.broker.killing import die_in_request
from tests.broker.stage_runs import KEY, outcomes
from tests.broker.test_stages_killed import ALLOW, PROCESSES
from tests.lab import Lab
from tests.writing import settle

OTHER = "consumer_byte_rate"
BEFORE = {"user=a0": {KEY: 1.0}}
AFTER = {f"user=a{number}": {KEY: 10.0 + number} for number in range(9)}
COMMAND = ("reconcile", "demo", *ALLOW, "--reason", "a test")


def kill(lab: Lab, die: Callable[..., None], command: tuple[str, ...] = COMMAND) -> RunFolder:
    """Run a command in a process that is killed; return its run."""
    process = PROCESSES.Process(target=die, args=(lab.environment, command))
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    settle(lab.cluster)
    return lab.runs[-1]


def begin(lab: Lab) -> None:
    """Start a run of nine changes, in three requests of three."""
    lab.put(BEFORE)
    lab.note(BEFORE)
    lab.desire(AFTER)


def shown(lab: Lab, run: RunFolder) -> Any:
    """Return what `show` reports of a run, as JSON."""
    return json.loads(lab.call("show", str(run.place), "--format", "json").stdout)


def counted(report: Any) -> Counter[str]:
    """Count the rows of a report by result."""
    return Counter(row["applied"]["status"] for row in report["rows"] if "applied" in row)


def listed(lab: Lab, run: RunFolder) -> tuple[str, int]:
    """Return the result of a run in `runs`, and how many keys it changed; `show` agrees with it."""
    told = json.loads(lab.call("runs", "demo", "--format", "json").stdout)
    [one] = [one for one in told if one["run"] == run.place.name]
    answer = shown(lab, run)["answer"]
    assert answer["status"] == one["status"]
    assert answer["sentence"] == one["sentence"] or one["stopped"]  # its sentence is the reason
    return one["status"], one["changes"]


@pytest.mark.local_store
def test_it_says_which_were_sent(lab: Lab) -> None:
    """Killed with a response in flight: some rows are accepted, some unknown, some not sent."""
    begin(lab)
    run = kill(lab, partial(die_in_request, 2, before=False))

    report = shown(lab, run)

    assert listed(lab, run) == ("Interrupted", 3)
    assert counted(report) == {"accepted": 3, "unknown": 3, "not_sent": 3}
    named = f"run {run.place.name} (Interrupted) has not recorded its end"
    assert lab.call("history", "demo").stderr.startswith(named)
    assert report["answer"]["status"] == "Interrupted"
    assert report["answer"]["sentence"] == (
        "it is unknown whether 3 quotas on demo were written; apply was interrupted; 3 pending; "
        "3 changes were written and not read back; 0 of 9 quotas in sync."
    )

    assert lab.call("verify", "--run", str(run.place)).returncode == 1
    report = shown(lab, run)
    assert (listed(lab, run), counted(report)) == (("Pending", 6), {"accepted": 6, "not_sent": 3})
    assert report["answer"]["sentence"] == (
        "3 changes to make on demo; apply was interrupted; 6 changes made by this run; 6 of 9 "
        "quotas in sync; 0 of 1 broker agrees."
    )


@pytest.mark.local_store
def test_it_matches_git_if_verify_finds_all_of_it(lab: Lab) -> None:
    """`verify` of a killed run, `show` and `runs` agree, and no row is unknown any more."""
    begin(lab)
    run = kill(lab, partial(die_in_request, 3, before=False))

    verified = lab.call("verify", "--run", str(run.place)).stdout

    assert verified.endswith("9 of 9 quotas verified on every broker: stored and in force.\n")
    report = shown(lab, run)
    assert (listed(lab, run), counted(report)) == (("In sync", 9), {"accepted": 9})
    assert report["answer"]["sentence"] == (
        "demo matches the files, whose commit is unknown; apply was interrupted; 9 changes made "
        "by this run; 9 of 9 quotas in sync; 1 of 1 broker agrees."
    )
    assert "  In sync, apply interrupted  9  " in lab.call("runs", "demo").stdout


@pytest.mark.local_store
def test_the_next_run_settles_it(lab: Lab) -> None:
    """A write that arrived is accepted, under the dead run's name; its end is recorded once.

    The run that settles it may be that of another folder name of the cluster.
    """
    begin(lab)
    run = kill(lab, partial(die_in_request, 2, before=False))
    renamed = lab.folder.rename(lab.folder.with_name("renamed"))

    assert lab.call("reconcile", "renamed", *COMMAND[2:]).returncode == 0

    renamed.rename(lab.folder)
    by = lab.store.runs("renamed")[0].name
    assert [(outcome.status, outcome.message) for outcome in run.outcomes(APPLIED)] == [
        *[(Status.ACCEPTED, None)] * 3,
        *[(Status.ACCEPTED, f"found by run {by}")] * 3,
        *[(Status.NOT_SENT, None)] * 3,
    ]
    record = json.loads((run.place / "end-0001.json").read())
    assert (record["run"], record["changed"]) == (run.place.name, 6)
    apply = next(one for one in record["stages"] if one["stage"] == "apply")
    assert (apply["status"], apply["message"]) == (
        "killed",
        f"it ended without recording how; run {by} recorded its end",
    )
    assert listed(lab, run) == ("Interrupted", 6)
    lab.run("reconcile")
    assert not (run.place / "end-0002.json").exists()


@pytest.mark.local_store
def test_what_was_settled_goes_back(lab: Lab) -> None:
    """A dead run's row is rolled back if a later run read it back and it has not changed since."""
    begin(lab)
    run = kill(lab, partial(die_in_request, 2, before=False))
    early = lab.call("rollback", str(run.place), "--reason", "INC-31")
    assert (early.returncode, "has not recorded its end" in early.stderr) == (1, True)
    lab.run("reconcile")
    lab.put({"user=a1": {KEY: 99.0}})

    planned = plan_back(lab, run)

    left = {row.entity: row.left for row in planned.read(ROLLBACK).rows}
    assert left == {
        **{f"user=a{number}": None for number in range(6)},
        "user=a1": "changed outside Git since",
    }
    write(lab, planned)
    kept = {f"user=a{number}": AFTER[f"user=a{number}"] for number in range(6, 9)}
    assert lab.stored() == {**BEFORE, "user=a1": {KEY: 99.0}, **kept}


@pytest.mark.local_store
def test_what_nobody_knows_is_left(lab: Lab) -> None:
    """A rollback lists a row without a recorded response as unknown, and leaves it alone."""
    begin(lab)
    run = kill(lab, partial(die_in_request, 2, before=True))
    lab.run("reconcile")

    planned = plan_back(lab, run)

    left = Counter(row.left for row in planned.read(ROLLBACK).rows)
    assert left == {None: 3, "it is unknown whether that run wrote it": 3}


@pytest.mark.local_store
def test_what_did_not_arrive_stays_unknown(lab: Lab) -> None:
    """A write of a dead run that did not arrive is unknown, because it may still arrive."""
    begin(lab)
    run = kill(lab, partial(die_in_request, 1, before=True))

    by = lab.run("reconcile").place.name

    first = run.outcomes(APPLIED)[0]
    assert (first.status, first.message) == (
        Status.UNKNOWN,
        f"not on the cluster when run {by} looked",
    )
    told = json.loads(
        lab.call("history", "demo", "--changes", "--entity", "user=a0", "--format", "json").stdout
    )
    names = ("what", "before", "requested", "found", "found_by")
    changes = sorted(tuple(change[name] for name in names) for change in told["changes"])
    assert changes == [  # both runs can end in the same second
        ("set", 1.0, 10.0, 10.0, by),
        ("unknown: not confirmed", 1.0, 10.0, 1.0, by),
    ]


@pytest.mark.local_store
def test_a_run_at_work_is_left_alone(lab: Lab) -> None:
    """A run whose process lives is not called dead, and its end is left to it."""
    begin(lab)
    run = lab.planned()
    mark(run.folder.place)
    with claim_run(run.folder) as folder, folder.stage("apply"):
        assert listed(lab, run.folder) == ("Running", 0)
        lab.run("reconcile")
    lab.run("reconcile")
    assert not (run.folder.place / "end-0001.json").exists()


def test_a_run_of_another_machine(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run whose process is not visible has a minute before its end is recorded."""
    begin(lab)
    run = kill(lab, partial(die_in_request, 1, before=False))
    place = run.place / CLAIM.of(1)
    place.replace(json.dumps(json.loads(place.read()) | {"process": None}).encode())
    for lease, is_settled in ((claim.LEASE, False), (0.0, True)):
        monkeypatch.setattr(claim, "LEASE", lease)
        assert is_settled or listed(lab, run) == ("Running", 0)
        lab.run("reconcile")
        assert (run.place / "end-0001.json").exists() is is_settled
    assert not is_marked(run.place)


def test_resumed_it_knows_its_own_writes(lab: Lab) -> None:
    """A killed run that is resumed reports its earlier writes as accepted; all can be undone."""
    begin(lab)
    run = kill(lab, partial(die_in_request, 2, before=False))

    run_stages(lab.resume(run, approve=run.read_json(PLAN)["digest"]), RESUMED)

    assert outcomes(run) == dict.fromkeys(AFTER, Status.ACCEPTED)
    assert listed(lab, run) == ("In sync", 9)
    write(lab, plan_back(lab, run))
    assert lab.stored() == BEFORE


@pytest.mark.local_store
def test_what_an_earlier_attempt_verified(lab: Lab) -> None:
    """It does not count as verified for what a later attempt wrote before it was killed."""
    begin(lab)
    run = lab.run("reconcile")
    lab.put({"user=a8": {KEY: None}})
    resumed = ("reconcile", "--run", str(run.place), "--approve", run.read_json(PLAN)["digest"])
    kill(lab, partial(die_in_request, 1, before=False), resumed)
    lab.run("reconcile")

    state = RunState(run)
    assert state.written == {(entity, KEY) for entity in AFTER}
    assert state.find_verified(state.written) == frozenset()


@pytest.mark.local_store
def test_killed_again_when_resumed(lab: Lab) -> None:
    """The second attempt's unknown rows differ from those of the first attempt."""
    begin(lab)
    run = kill(lab, partial(die_in_request, 1, before=True))
    resumed = ("reconcile", "--run", str(run.place), "--approve", run.read_json(PLAN)["digest"])
    kill(lab, partial(die_in_request, 3, before=False), resumed)

    assert listed(lab, run) == ("Interrupted", 6)
    assert counted(shown(lab, run)) == {"accepted": 6, "unknown": 3}


def test_a_row_that_moved_after_the_kill(lab: Lab) -> None:
    """One key of an entity moved: the other stays accepted, and a rollback names the moved one."""
    lab.put(BEFORE)
    lab.note(BEFORE)
    lab.desire({"user=a0": {KEY: 5.0, OTHER: 6.0}})
    run = kill(lab, partial(die_in_request, 1, before=False))
    lab.put({"user=a0": {KEY: 7.0}})

    (run.place / APPLIED).delete()
    resumed = ("reconcile", "--run", str(run.place), "--approve", run.read_json(PLAN)["digest"])
    assert lab.call(*resumed).returncode == 1

    told = [(outcome.keys, outcome.status, outcome.earlier) for outcome in run.outcomes(APPLIED)]
    assert sorted(told) == [
        ((OTHER,), Status.ACCEPTED, Status.UNKNOWN),
        ((KEY,), Status.STALE, Status.UNKNOWN),
    ]


@pytest.mark.local_store
def test_an_alter(lab: Lab) -> None:
    """A one-off is shown too; the next run or one-off records its end before it writes."""
    lab.desire({})
    change = ("alter", "demo", "--names", "user=a", "--add", f"{KEY}=7")
    run = kill(lab, partial(die_in_request, 1, before=False), change)

    assert listed(lab, run) == ("Interrupted", 0)
    assert [outcome.status for outcome in RunState(run).outcomes] == [Status.UNKNOWN]
    assert "0 of 1 change on demo was written, 1 may have been" in lab.call("show", "last").stdout
    lab.run("reconcile")
    record = json.loads((run.place / "end-0001.json").read())
    assert (record["verb"], record["changed"]) == ("alter", 1)

    run = kill(lab, partial(die_in_request, 1, before=False), change)
    assert lab.call(*change[:-1], f"{KEY}=8").returncode == 0
    assert (run.place / "end-0001.json").exists()


@pytest.mark.parametrize("before", [True, False])
def test_nothing_is_lost_between_noting_and_sending(before: bool, lab: Lab) -> None:  # noqa: FBT001
    """A row in flight at the kill is unknown, whether or not its request was sent."""
    begin(lab)
    run = kill(lab, partial(die_in_request, 1, before=before))

    assert counted(shown(lab, run)) == {"unknown": 3, "not_sent": 6}
