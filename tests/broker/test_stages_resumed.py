"""apply resumed: the results of an earlier attempt are kept."""

from typing import Never

import pytest

from quota_ops.model.errors import Refused
from quota_ops.model.runs.outcome import Status, build_outcomes
from quota_ops.report.outline.formats import moment
from quota_ops.runs.chain import RESUMED, run_stages
from quota_ops.runs.run import Run
from quota_ops.store.run.files import APPLIED, BATCH, PLAN, VERIFICATION
from quota_ops.store.run.folder import RunFolder
from tests.broker.going_back import plan_back, write
from tests.broker.stage_runs import KEY, TEN, After, outcomes
from tests.broker.test_dead_runs import listed
from tests.lab import Lab, error_of

HALF = dict(list(TEN.items())[:6])


def begun(lab: Lab, status: Status) -> Run:
    """Create a run that stopped after half of its rows, which arrived; return its outcomes."""
    lab.put({"user=u0": {KEY: 1.0}})
    lab.note({"user=u0": {KEY: 1.0}})
    lab.desire(TEN)
    run = lab.planned()
    for number, rows in run.folder.batches().items():
        if rows[0].entity in HALF:
            said = build_outcomes(number, rows, status, "no answer")
            run.folder.leave_outcomes(BATCH.of(number), tuple(said))
    lab.put(HALF)
    return run


@pytest.mark.usefixtures("small_batches")
def test_what_was_left_unknown_is_settled_by_resuming(lab: Lab) -> None:
    """A write without a response that arrived is accepted, and can be rolled back."""
    run = begun(lab, Status.UNKNOWN)

    run_stages(run, RESUMED)

    assert outcomes(run.folder) == dict.fromkeys(TEN, Status.ACCEPTED)
    settled = {outcome.entity for outcome in run.folder.outcomes(APPLIED) if outcome.message}
    assert settled == set(HALF)
    write(lab, plan_back(lab, run.folder))
    assert lab.stored() == lab.known() == {"user=u0": {KEY: 1.0}}


@pytest.mark.usefixtures("small_batches")
@pytest.mark.parametrize("status", [Status.ACCEPTED, Status.UNKNOWN])
def test_a_resumed_run_that_is_stopped_forgets_nothing(status: Status, lab: Lab) -> None:
    """The error counts entities; rows not reached again keep their result in later attempts."""
    run = begun(lab, status)
    hold = lab.store.of_cluster(lab.cluster.cluster_id).holds / "00000001.json"
    stopped = lab.resume(
        run.folder, approve=run.approve, progress=After(1, lambda: hold.replace(b"{"))
    )

    error = error_of(stopped, ("apply",))
    first = {outcome for outcome in run.folder.outcomes(APPLIED) if outcome.entity in HALF}
    hold.delete()
    run_stages(run, RESUMED)

    assert isinstance(error, Refused)
    assert "of 10 entities d" in error.message  # done, or: did not end as planned
    assert {outcome.status for outcome in first} == {Status.ACCEPTED, status}
    assert outcomes(run.folder) == dict.fromkeys(TEN, Status.ACCEPTED)


def test_a_later_run_makes_a_verification_old(lab: Lab) -> None:
    """A verified run does not match Git once a task refused to apply it: a later run wrote.

    It shows what was verified before, and when. The command line refuses before apply begins.
    """
    lab.desire({"user=alice": {KEY: 10.0}})
    run = lab.run("reconcile")
    lab.desire({"user=alice": {KEY: 20.0}})
    lab.run("reconcile")

    digest = run.read_json(PLAN)["digest"]
    assert isinstance(error_of(lab.resume(run, approve=digest), ("apply",)), Refused)

    assert shown(lab, run) == (
        "apply was incomplete, so it is unknown whether demo matches Git; "
        f"1 change was written and not read back since {moment(run.read(VERIFICATION).at)}, "
        "when 1 of 1 quota was verified; 0 of 1 quota in sync."
    )
    assert listed(lab, run) == ("Unknown", 1)


@pytest.mark.parametrize("status", ["Unknown", "Interrupted"])
def test_a_stopped_apply_makes_a_verification_old(status: str, lab: Lab) -> None:
    """However apply stops, its cluster is unknown until verify has read it again."""
    lab.desire({"user=alice": {KEY: 10.0}})
    run = lab.run("reconcile")
    if status == "Unknown":
        error_of(lab.resume(run, approve="another digest"), RESUMED[:1])
    else:
        with pytest.raises(KeyboardInterrupt):
            run_stages(lab.resume(run, connect=interrupt), RESUMED[:1])

    assert "so it is unknown whether demo matches Git" in shown(lab, run)
    assert listed(lab, run) == (status, 1)

    run_stages(lab.resume(run), RESUMED[1:])
    assert shown(lab, run).startswith("demo matches the files")


def shown(lab: Lab, run: RunFolder) -> str:
    """Return the sentence of a run."""
    return lab.call("show", str(run.place)).stdout.partition("\n")[0]


def interrupt() -> Never:
    """Be interrupted by Ctrl-C while the cluster is opened."""
    raise KeyboardInterrupt
