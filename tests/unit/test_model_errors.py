"""Errors that nobody foresaw, in words."""

from errno import EMFILE

import pytest

from quota_ops.model.errors import Unexpected


@pytest.mark.parametrize(
    ("error", "message", "remedy"),
    [
        (MemoryError(), "this machine has no memory left for the command", "Free some, or run it"),
        (OSError(EMFILE, "x"), "this process may open no more files", "Raise the limit"),
        (OSError(5, "Input/output error", "a.yaml"), "a.yaml: Input/output error", "If that is"),
        (KeyError("x"), "unexpected error: KeyError: 'x'", "Please report it"),
    ],
)
def test_an_unexpected_error_has_a_remedy(error: BaseException, message: str, remedy: str) -> None:
    """Memory, files and places are named; of any other the traceback is worth a report."""
    told = Unexpected(error)

    assert told.message == message
    assert str(told.remedy).startswith(remedy)
    assert str(told.remedy).endswith("What a run has written so far is listed by: quota-ops runs")
