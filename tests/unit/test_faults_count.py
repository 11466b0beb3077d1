"""How `make faults` counts: a fault that ends in any way is in its last line."""

from pathlib import Path

import pytest

from tests.faults.__main__ import play

FAULTS = """
import os
import time

import pytest

def test_holds():
    pass

def test_fails():
    assert False

@pytest.mark.timeout(0.2)
def test_hangs():
    time.sleep(60)

def test_ends_its_process():
    os._exit(3)

def test_holds_after_that():
    pass
"""


def test_each_fault_is_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One that timed out, or ended its process, is no fault less: the line names it."""
    file = tmp_path / "test_some.py"
    file.write_text(FAULTS)
    options = ["-q", "-p", "no:cacheprovider", f"--rootdir={tmp_path}"]

    code = play(options, {"folder": ([str(file)], {})}, tmp_path / "kept")

    assert code != 0
    assert capsys.readouterr().out.splitlines()[-1] == (
        "5 to be played, 5 played, 2 held; ended the process: test_some.py::test_ends_its_process "
        "(folder); failed: test_some.py::test_fails (folder); timed out: test_some.py::test_hangs "
        "(folder)"
    )
