"""paused and freeze on a real broker: writes stop; plans, reports and holds continue."""

import time
from datetime import UTC, datetime, timedelta, tzinfo

import pytest

from quota_ops.desired import pauses
from quota_ops.model.errors import Refused
from quota_ops.model.runs.outcome import Status
from quota_ops.runs.chain import RESUMED, run_stages
from quota_ops.store.run.files import APPLIED, PLAN
from quota_ops.store.run.folder import RunFolder
from tests.broker.stage_runs import KEY, TEN, After, outcomes
from tests.lab import Lab, error_of
from tests.writing import State

ALICE: State = {"user=alice": {KEY: 10.0}}
NOW = {"cron": "* * * * *", "zone": "UTC", "duration": "1h", "reason": "the weekend"}


def freeze_in_an_hour() -> dict[str, str]:
    """Return a freeze that begins an hour from now, and lasts an hour."""
    return NOW | {"cron": f"{datetime.now(UTC) + timedelta(hours=1):%M %H * * *}"}


class Later(datetime):
    """A clock that is an hour and a half fast."""

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> "Later":
        """Return the time of that clock."""
        return cls.fromtimestamp(time.time() + 5400, tz)


def pages(run: RunFolder) -> dict[str, str]:
    """Return the reports of a run for people."""
    names = ("report.txt", "report.html")
    return {name: (run.place / name).read().decode() for name in names}


def test_paused(lab: Lab) -> None:
    """A plan shows the pause and succeeds.

    Reconcile is refused, writes nothing, and still reports.
    """
    lab.desire(ALICE, paused="broker upgrade")

    planned, reconciled = lab.call("plan", "demo"), lab.call("reconcile", "demo")

    why = "demo is paused: broker upgrade"
    assert (planned.returncode, planned.stderr) == (0, "")
    assert f"\n{why}. Nothing is written; reports continue.\n" in planned.stdout
    assert (reconciled.returncode, reconciled.stderr.splitlines()[0]) == (1, why)
    assert lab.stored() == lab.known() == {}
    (reported,) = (run for run in lab.runs if run.has("report.html"))
    assert all(why in text for text in pages(reported).values())

    lab.desire(ALICE)
    lab.run("reconcile", allow={})
    assert lab.stored() == ALICE


def test_frozen(lab: Lab) -> None:
    """The refusal shows until when; a run with nothing to write succeeds."""
    lab.desire(ALICE)
    lab.run("reconcile")
    lab.desire(ALICE, freeze=[NOW])
    lab.run("reconcile", allow={})
    lab.desire({**ALICE, "user=bob": {KEY: 1.0}}, freeze=[NOW])

    folder, error = lab.refused("reconcile", allow={})

    assert isinstance(error, Refused)
    assert error.message.startswith("demo is frozen until ")
    assert error.message.endswith(" UTC: the weekend")
    assert lab.stored() == ALICE
    assert folder.read_json(PLAN)["guards"] == []
    assert folder.read_json("report.json")["plan"]["standstill"] in error.message
    assert not folder.has(APPLIED)


def test_a_plan_that_waited_into_a_freeze(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """Apply uses its own clock; after the window the same approval is valid."""
    lab.desire(ALICE, freeze=[freeze_in_an_hour()])
    run = lab.planned()

    with monkeypatch.context() as patch:
        patch.setattr(pauses, "datetime", Later)
        assert error_of(run, RESUMED).message.startswith("demo is frozen until ")
    assert lab.stored() == {}

    run_stages(run, RESUMED)
    assert lab.stored() == ALICE


@pytest.mark.usefixtures("small_batches")
def test_a_freeze_that_begins_between_two_batches(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was sent is read back as managed, the rest is not sent; the next run continues."""
    lab.desire(TEN, freeze=[freeze_in_an_hour()])
    with monkeypatch.context() as patch:
        progress = After(2, lambda: patch.setattr(pauses, "datetime", Later))
        run = lab.planned(progress=progress)
        error = error_of(run, RESUMED)

    assert error.message.startswith("4 of 10 entities done: demo is frozen until ")
    assert sorted(outcomes(run.folder).values()) == [Status.ACCEPTED] * 4 + [Status.NOT_SENT] * 6
    assert len(lab.stored()) == 4
    assert lab.known() == lab.stored()
    lab.run("reconcile", allow={})
    assert lab.stored() == TEN
