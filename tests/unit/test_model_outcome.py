"""What is known of a write after several attempts of a run."""

import pytest

from quota_ops.model.errors import Refused
from quota_ops.model.quotas.difference import Action, Difference, Kind
from quota_ops.model.quotas.entity import Entity
from quota_ops.model.quotas.rows import Key
from quota_ops.model.runs.outcome import (
    MOST_LINES,
    EntityResponse,
    Outcome,
    Status,
    build_outcomes,
    find_open,
    find_unwritten,
    format_lines,
    match_outcomes,
    settle_unknown,
)
from quota_ops.model.runs.stages import StageStatus, explain_failure


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


def test_an_unknown_outcome_that_was_found() -> None:
    """It was accepted, and has no error; one that was not found keeps it, and others stay."""
    timed_out = (Status.UNKNOWN, 7, "REQUEST_TIMED_OUT", "too slow")
    there, missing = (Outcome(1, name, ("k",), *timed_out) for name in ("user=a", "user=b"))
    other = Outcome(1, "user=c", ("k",), Status.REFUSED, 42, "INVALID_REQUEST", "no")
    unequal = {Key("user=b", "k"), Key("user=c", "k")}

    accepted = Outcome(1, "user=a", ("k",), Status.ACCEPTED, message="found")
    settled = settle_unknown((there, missing, other), unequal, "found")
    assert tuple(settled) == (accepted, missing, other)
    settled = settle_unknown((there, missing, other), unequal, "found", missing="not there")
    assert tuple(settled) == (accepted, missing._replace(message="not there"), other)


def test_outcomes_of_a_request() -> None:
    """Each entity has the broker's response to it, in any order; one without is unknown."""
    rows = [
        Difference("id", *row, Kind.PENDING, Action.SET, before=None, after=1.0) for row in ROWS
    ]
    responses = [
        EntityResponse(Entity.parse("user=b"), 42, "INVALID_REQUEST", "no"),
        EntityResponse(Entity.parse("user=a"), 0, "NONE", None),
    ]

    outcomes = match_outcomes(1, rows, responses)

    assert outcomes == (
        Outcome(1, "user=a", ("k", "l"), Status.ACCEPTED),
        Outcome(1, "user=b", ("k",), Status.REFUSED, 42, "INVALID_REQUEST", "no"),
        Outcome(1, "user=c", ("k",), Status.UNKNOWN, message="no response for this entity"),
    )
    assert build_outcomes(1, rows[2:3], Status.HELD, None) == (
        Outcome(1, "user=b", ("k",), Status.HELD),
    )
    assert find_unwritten(outcomes) == {Key("user=b", "k")}
    late = outcomes[2]._replace(may_arrive=True)
    assert find_open((*outcomes, late)) == {Key("user=c", "k")}


ROWS = (("user=a", "k"), ("user=a", "l"), ("user=b", "k"), ("user=c", "k"))


def test_an_error_lists_few_lines() -> None:
    """Beyond twenty lines, it counts the others and names the file that has them."""
    lines = [str(at) for at in range(MOST_LINES + 2)]

    assert format_lines(lines[:1], "applied.json") == "  0"
    assert format_lines(lines, "applied.json").splitlines()[-1] == (
        "  and 2 more, all in applied.json"
    )


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
