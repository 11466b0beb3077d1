"""A quota released after the plan was made: no run writes it, and the run shows it."""

from functools import partial

import pytest

from quota_ops.model.plans.ledger_edits import INTENDED
from quota_ops.model.runs.outcome import Status
from quota_ops.runs.chain import CHAINS, RESUMED, run_stages
from tests.broker.going_back import plan_back
from tests.broker.stage_runs import KEY, After, outcomes
from tests.lab import Lab, error_of
from tests.writing import State

BEFORE: State = {f"user=w{number}": {KEY: 1.0} for number in range(6)}
AFTER: State = {f"user=w{number}": {KEY: 2.0} for number in range(5)}
"""Git drops w5, and moves the five others."""
RELEASED = ("user=w4", "user=w5")
LEFT: State = {**AFTER, **{one: BEFORE[one] for one in RELEASED}}


def begin(lab: Lab) -> None:
    """Create six managed quotas, each of which a plan changes."""
    lab.put(BEFORE)
    lab.note(BEFORE)
    lab.desire(AFTER)


def release(lab: Lab) -> None:
    """Release a quota that the plan clears, and one that it sets."""
    for name in RELEASED:
        ended = lab.call("release", "demo", "--from-ledger", "--names", name, "--reason", "theirs")
        assert ended.returncode == 0, ended.stderr


def test_a_plan_that_waits(lab: Lab) -> None:
    """A quota released before apply is left as it is and named; the others are written."""
    begin(lab)
    run = lab.planned()
    release(lab)

    error = error_of(run, RESUMED)

    assert str(error) == (
        "2 of 6 entities did not end as planned:\n"
        "  user=w4  stale: released since the plan was made\n"
        "  user=w5  stale: released since the plan was made\n"
        "  The others were written. This run leaves stale rows alone; a new one is needed. "
        "Plan again to see their status: quota-ops plan demo"
    )
    assert error.exit_code == 1
    stale = dict.fromkeys(RELEASED, Status.STALE)
    assert outcomes(run.folder) == dict.fromkeys(BEFORE, Status.ACCEPTED) | stale
    assert (lab.stored(), lab.known(INTENDED)) == (LEFT, {})
    assert lab.known() == {one: AFTER[one] for one in AFTER if one not in RELEASED}


@pytest.mark.usefixtures("small_batches")
def test_between_two_requests(lab: Lab) -> None:
    """A quota released while apply sends is in no later request, though its intent was recorded."""
    begin(lab)
    run = lab.start(progress=After(1, partial(release, lab)))

    error = error_of(run, CHAINS["reconcile"])

    assert str(error).count("stale: released since the plan was made") == 2
    assert (lab.stored(), lab.known(INTENDED)) == (LEFT, {})


def test_a_rollback_that_waits(lab: Lab) -> None:
    """A rollback does not write a quota that was released after its plan was made."""
    begin(lab)
    folder = plan_back(lab, lab.run("reconcile"))
    release(lab)

    error = error_of(lab.resume(folder), RESUMED)

    assert "user=w4  stale: released since the plan was made" in str(error)
    assert lab.stored() == {**BEFORE, "user=w4": AFTER["user=w4"]}


def test_a_released_quota_that_is_as_planned(lab: Lab) -> None:
    """Nothing is sent for it, so the run succeeds."""
    begin(lab)
    run = lab.planned()
    release(lab)
    lab.put({"user=w4": AFTER["user=w4"], "user=w5": {KEY: None}})

    run_stages(run, RESUMED)

    already = dict.fromkeys(RELEASED, Status.ALREADY)
    assert outcomes(run.folder) == dict.fromkeys(BEFORE, Status.ACCEPTED) | already


def test_the_only_quota_that_differs(lab: Lab) -> None:
    """No screen claims that others were written, or that a broker agrees without a query."""
    lab.put(BEFORE)
    lab.note(BEFORE)
    lab.desire({**BEFORE, "user=w4": AFTER["user=w4"]})
    run = lab.planned()
    lab.put({"user=w4": {KEY: 3.0}})

    error = error_of(run, RESUMED)

    agrees = "agrees on 5 of 6 keys (1 was skipped)"
    assert str(error) == (
        "1 of 1 entity did not end as planned:\n"
        f"  user=w4  stale: {KEY} is now 3 B/s\n"
        "  This run leaves stale rows alone; a new one is needed. "
        "Plan again to see their status: quota-ops plan demo"
    )
    shown = lab.call("show", str(run.folder.place)).stdout
    assert f"broker 1 {agrees}\n" in shown
    for name in ("report.txt", "report.html"):
        assert f"1 of 1 broker {agrees}" in (run.folder.place / name).read().decode()
