"""Unexpected errors: an exit code of their own, a short message, a traceback on request."""

import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest
from click.testing import CliRunner

from quota_ops import cli
from quota_ops.cli.commands import findings as findings_command
from quota_ops.model.errors import InvalidInput, Unexpected

FOUND = "To see what a run has written so far: quota-ops runs"
"""The last line of every such message."""


MEMORY = (
    "this machine has too little free memory for the command\n"
    "  Free memory, use a machine with more, or raise the limit: see ulimit -v.\n"
)
FILES = "this process cannot open more files\n  Raise the limit: see ulimit -n.\n"
THREADS = (
    "this process cannot start more threads\n"
    "  Raise the limits of memory and processes: see ulimit -v and ulimit -u.\n"
)


def caused(cause: BaseException) -> InvalidInput:
    """Return an error of quota-ops with a limit of the machine as its cause."""
    error = InvalidInput("/x cannot be read", "Fix it.")
    error.__cause__ = cause
    return error


OF_MEMORY = [
    MemoryError(),
    OSError(errno.ENOMEM, os.strerror(errno.ENOMEM), "/x"),
    duckdb.OutOfMemoryException("Out of Memory Error: failed to allocate data"),
    ImportError("libarrow.so: failed to map segment from shared object"),
    caused(MemoryError()),
]
OF_FILES = [
    OSError(errno.EMFILE, os.strerror(errno.EMFILE), "/x"),
    OSError(errno.ENFILE, os.strerror(errno.ENFILE), "/x"),
    duckdb.IOException('IO Error: Cannot open file "/x": Too many open files'),
    caused(OSError(errno.EMFILE, os.strerror(errno.EMFILE), "/x")),
]


def fail(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    """Make `quota-ops findings` raise an unexpected error."""

    def raise_it() -> None:
        raise error

    monkeypatch.setattr(findings_command.findings, "callback", lambda **_: raise_it())


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (
            ZeroDivisionError("division by zero"),
            (
                "unexpected error: ZeroDivisionError: division by zero\n"
                "  Please report it with the traceback that --verbose shows.\n"
            ),
        ),
        *((error, MEMORY) for error in OF_MEMORY),
        *((error, FILES) for error in OF_FILES),
        (RuntimeError("can't start new thread"), THREADS),
        (
            PermissionError(errno.EACCES, "Permission denied", "/x"),
            (
                "/x: Permission denied\n"
                "  If you cannot fix this, report it with the traceback that --verbose shows.\n"
            ),
        ),
    ],
)
def test_an_unexpected_error(
    error: Exception, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The message gives the error and the remedy; --verbose adds the traceback."""
    fail(monkeypatch, error)

    short = CliRunner().invoke(cli.main, ["findings"])
    full = CliRunner().invoke(cli.main, ["findings", "--verbose"])

    assert (short.exit_code, short.stderr) == (5, f"{message}  {FOUND}\n")
    assert full.exit_code == 5
    assert "Traceback (most recent call last):\n" in full.stderr
    assert full.stderr.endswith(short.stderr)


def test_a_machine_reads_an_unexpected_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With --format json it is an object like every other error."""
    monkeypatch.setattr(sys, "argv", ["quota-ops", "--format", "json"])

    cli.show_error(Unexpected(ZeroDivisionError("x")))

    assert json.loads(capsys.readouterr().err)["exit_code"] == 5


@pytest.mark.parametrize(
    "files", [5, 8, 20, *(pytest.param(more, marks=pytest.mark.matrix) for more in (6, 7, 9, 10))]
)
def test_few_open_files(files: int, tmp_path: Path) -> None:
    """A process that may open few files succeeds, or ends with the limit as its error."""
    (tmp_path / "demo").mkdir()
    (tmp_path / "demo" / "cluster.yaml").write_text(
        "cluster_id: MkU3OEVBNTcwNTJENDM2Qg\nconnection: demo\n"
    )
    actual = tmp_path / "actual.jsonl"
    actual.write_text('{"cluster_id": null}\n')
    command = [sys.executable, "-m", "quota_ops", "plan", "demo", "--actual", str(actual)]
    options = ["--desired-state", str(tmp_path), "--run-store", str(tmp_path / "store")]
    limit = f"import resource; resource.setrlimit(resource.RLIMIT_NOFILE, ({files}, {files}))"
    start = f"{limit}; import os, sys; os.execv(sys.executable, {command + options!r})"

    ended = subprocess.run(
        [sys.executable, "-c", start], capture_output=True, text=True, check=False
    )

    if ended.returncode:
        assert (ended.returncode, ended.stderr) == (5, f"{FILES}  {FOUND}\n")
