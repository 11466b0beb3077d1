"""What is known of a write after several attempts of a run."""

import pytest

from quota_ops.model.errors import Refused
from quota_ops.model.outcome import Outcome, Status
from quota_ops.model.report import StageResult, StageStatus, explain_failure, has_not_ended


@pytest.mark.parametrize(
    ("status", "earlier", "known"),
    [
        (Status.ACCEPTED, None, (True, False)),
        (Status.STALE, Status.ACCEPTED, (True, False)),
        (Status.UNKNOWN, Status.ACCEPTED, (True, False)),
        (Status.UNKNOWN, None, (False, True)),
        (Status.STALE, Status.UNKNOWN, (False, True)),
        (Status.ALREADY, None, (False, False)),
        (Status.NOT_SENT, None, (False, False)),
    ],
)
def test_written(status: Status, earlier: Status | None, known: tuple[bool, bool]) -> None:
    """What any attempt wrote stays written, whatever a later attempt finds."""
    outcome = Outcome(1, "user=a", ("k",), status, earlier=earlier)

    assert (outcome.was_written, outcome.may_be_written) == known


def test_a_run_that_has_not_ended() -> None:
    """One stage without an end is enough."""
    done = StageResult("plan", StageStatus.DONE)

    assert not has_not_ended([done])
    assert has_not_ended([done, StageResult("apply", StageStatus.NOT_ENDED)])


@pytest.mark.parametrize(
    ("error", "known"),
    [
        (KeyboardInterrupt(), (StageStatus.INTERRUPTED, "interrupted by a signal")),
        (Refused("no", "Ask."), (StageStatus.REFUSED, str(Refused("no", "Ask.")))),
        (ValueError("odd"), (StageStatus.FAILED, "ValueError: odd")),
    ],
)
def test_how_a_stage_failed(error: BaseException, known: tuple[StageStatus, str]) -> None:
    """Only an error that quota-ops foresaw is recorded by its message alone."""
    assert explain_failure(error) == known
