"""Unexpected errors, described in words."""

from errno import EMFILE

import pytest

from quota_ops.model.errors import (
    InvalidDesiredState,
    InvalidInput,
    Unexpected,
    describe_damage,
    find_limit,
)
from quota_ops.model.finding import Problem


@pytest.mark.parametrize(
    ("error", "message", "remedy"),
    [
        (
            MemoryError(),
            "this machine has too little free memory for the command",
            "Free memory, use a machine",
        ),
        (OSError(EMFILE, "x"), "this process cannot open more files", "Raise the limit"),
        (
            OSError(5, "Input/output error", "a.yaml"),
            "a.yaml: Input/output error",
            "If you cannot fix this",
        ),
        (KeyError("x"), "unexpected error: KeyError: 'x'", "Please report it"),
    ],
)
def test_an_unexpected_error_has_a_remedy(error: BaseException, message: str, remedy: str) -> None:
    """An unexpected error names its cause and place if known, and its remedy fits the cause."""
    told = Unexpected(error)

    assert told.message == message
    assert str(told.remedy).startswith(remedy)
    assert str(told.remedy).endswith("To see what a run has written so far: quota-ops runs")


def test_problems_are_added_to_others() -> None:
    """All problems are listed, and each file is counted once."""
    first, last = (Problem(file, 1, 1, f"{file} is wrong") for file in ("a.yaml", "b.yaml"))
    error = InvalidDesiredState([first], files=3, quotas=7, unlisted=2).adding([first, last])

    assert error.problems == (first, first, last)
    assert (error.files, error.files_with_problems) == (4, 2)
    assert (error.quotas, error.unlisted) == (7, 2)


def caused(cause: BaseException) -> InvalidInput:
    """Return an error of quota-ops with another as its cause."""
    error = InvalidInput("/x cannot be read: Too many open files", "Fix it.")
    error.__context__ = ValueError("not this one")
    error.__context__.__cause__ = cause
    return error


@pytest.mark.parametrize(
    "limit",
    [MemoryError(), OSError(EMFILE, "x"), RuntimeError("can't start new thread"), OSError("x")],
)
def test_a_limit_is_found_behind_an_error(limit: BaseException) -> None:
    """A limit of the machine is found among an error's causes, at any depth; no other cause is."""
    is_limit = str(limit) != "x"

    assert find_limit(caused(limit)) is (limit if is_limit else None)


def test_the_damage_of_a_file_is_described() -> None:
    """What is in the place of a file is named, without a traceback or an error number."""
    pipe = OSError(22, "It is a pipe or a device, not a file", "x.json")

    assert describe_damage(pipe) == "It is a pipe or a device, not a file"
    assert describe_damage(KeyError("by")) == "the field 'by' is missing"
    assert describe_damage(TypeError()) == "its values do not have the expected form"
