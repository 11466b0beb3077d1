"""What a person is told to do about rows that validate could not get accepted."""

import pytest

from quota_ops.model.runs.outcome import Outcome, Status
from quota_ops.stages.validate import find_remedy

AGAIN, FIX = "The controller did not decide: run again.", "Fix the lines above."


@pytest.mark.parametrize(
    ("errors", "remedy"),
    [
        (["NOT_CONTROLLER", "REQUEST_TIMED_OUT"], AGAIN),
        ([None], AGAIN),
        (["NOT_CONTROLLER", "INVALID_REQUEST"], FIX),
        (["UNKNOWN_SERVER_ERROR"], FIX),
    ],
)
def test_only_a_rejected_line_is_to_be_fixed(errors: list[str | None], remedy: str) -> None:
    """An election of a controller is the fault of no line of YAML."""
    rejected = [Outcome(1, "user=a", ("k",), Status.REFUSED, error=error) for error in errors]

    assert find_remedy(rejected) == remedy
