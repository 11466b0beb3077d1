"""The process `quota-ops`: what remains when it ends at once."""

import subprocess
import sys

import pytest

QUOTA_OPS = (sys.executable, "-m", "quota_ops")


@pytest.mark.parametrize(
    ("arguments", "code"),
    [(["schema", "quotas"], 0), (["check", "--desired-state", "/nowhere"], 2), (["--nothing"], 2)],
)
def test_a_process_ends_with_its_commands_exit_code(arguments: list[str], code: int) -> None:
    """The process exits with the command's code, after all of the output is written."""
    ended = subprocess.run([*QUOTA_OPS, *arguments], capture_output=True, text=True, check=False)

    said = ended.stdout if code == 0 else ended.stderr
    assert (ended.returncode, said.endswith("\n")) == (code, True)
    if code == 0:
        assert said.rstrip().endswith("}")


FULL = "quota-ops: cannot print: No space left on device\n"


@pytest.mark.parametrize(
    ("command", "code", "stderr"),
    [
        ("schema quotas > /dev/full", 120, FULL),
        ("--help > /dev/full", 120, FULL),
        ("schema quotas >&-", 0, ""),
        ("schema quotas <&- >&- 2>&-", 0, ""),
        ("check --desired-state /nowhere 2> /dev/full", 2, ""),
        ("check --desired-state /nowhere 2>&-", 2, ""),
        ("--nothing > /dev/full 2>&1", 2, ""),
    ],
)
def test_what_a_command_did_decides_its_exit_code(command: str, code: int, stderr: str) -> None:
    """A closed output leaves the exit code unchanged; a success whose output is lost gives 120."""
    ended = subprocess.run(
        ["/bin/sh", "-c", f"{' '.join(QUOTA_OPS)} {command}"],
        capture_output=True,
        text=True,
        check=False,
    )

    assert (ended.returncode, ended.stdout, ended.stderr) == (code, "", stderr)


def test_a_reader_that_leaves_early_sees_no_traceback() -> None:
    """A reader that leaves without reading, as in `schema quotas | :`, causes no error."""
    piped = subprocess.run(
        ["/bin/sh", "-c", f"({' '.join(QUOTA_OPS)} schema quotas; echo $? >&2) | :"],
        capture_output=True,
        text=True,
        check=False,
    )

    assert (piped.stdout, piped.stderr) == ("", "0\n")


def test_a_programming_error_still_ends_as_one() -> None:
    """An unexpected error keeps its traceback, and exits with 1."""
    broken = "import quota_ops.__main__ as it; it.main = lambda **_: 1 / 0; it.run()"

    ended = subprocess.run(
        [sys.executable, "-c", broken], capture_output=True, text=True, check=False
    )

    assert (ended.returncode, ended.stderr.splitlines()[-1]) == (
        1,
        "ZeroDivisionError: division by zero",
    )


def test_a_process_that_used_duckdb_ends_in_silence() -> None:
    """No library writes at the end of a plan: stderr has the output of quota-ops alone."""
    planned = "import duckdb, quota_ops.__main__ as it; it.main = lambda **_: duckdb.sql('')"

    ended = subprocess.run(
        [sys.executable, "-c", f"{planned}; it.run()"], capture_output=True, text=True, check=False
    )

    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")
