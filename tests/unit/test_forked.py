"""Work in a fork of the process: its order, its errors, and when nothing is forked.

Each promise is a process of its own, because the suite's has threads.
"""

import subprocess
import sys
from pathlib import Path

import pytest

from quota_ops.stages.forked import forked

_SCRIPT = """
import os, threading
from pathlib import Path
from quota_ops.stages.forked import forked

def work():
    with Path("told").open("a") as told:
        print("work", "here" if os.getpid() == HERE else "in a fork", file=told)
    WORK

HERE = os.getpid()
"""


def run(folder: Path, work: str, program: str) -> tuple[list[str], list[str]]:
    """What a program that forks came to print, and where the work was done."""
    script = _SCRIPT.replace("WORK", work) + program
    ended = subprocess.run(
        [sys.executable, "-c", script],
        env={"PYTHONPATH": str(Path(__file__).parents[2])},
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return ended.stdout.splitlines(), (folder / "told").read_text().splitlines()


def test_work_is_done_in_a_fork_while_the_block_runs(tmp_path: Path) -> None:
    """Both run at once, and at the block's end the work is done."""
    program = """
with forked(work):
    while not Path("begun").exists():
        pass
    Path("heard").touch()
print(Path("ended").exists())
"""
    work = """Path("begun").touch()
    while not Path("heard").exists():
        pass
    Path("ended").touch()"""
    assert run(tmp_path, work, program) == (["True"], ["work in a fork"])


def test_what_fails_in_the_fork_is_raised_here(tmp_path: Path) -> None:
    """The work is done once more, so its error has everything that it would have had."""
    program = """
try:
    with forked(work):
        print("block")
except ValueError as error:
    print("raised", error)
"""
    work = "raise ValueError('no such file')"
    told = ["work in a fork", "work here"]
    assert run(tmp_path, work, program) == (["block", "raised no such file"], told)


def test_beside_another_thread_the_work_is_done_first(tmp_path: Path) -> None:
    """A fork would lack the other thread, so there is none."""
    program = """
done = threading.Event()
threading.Thread(target=done.wait).start()
with forked(work):
    print(Path("told").read_text().strip())
done.set()
"""
    assert run(tmp_path, "pass", program) == (["work here"], ["work here"])


def test_an_error_of_the_block_waits_for_the_fork(tmp_path: Path) -> None:
    """Nothing that was begun goes on when the error is told."""
    program = """
try:
    with forked(work):
        raise KeyError("block")
except KeyError:
    print(Path("ended").exists())
"""
    work = """import time; time.sleep(0.2); Path("ended").touch()"""
    assert run(tmp_path, work, program) == (["True"], ["work in a fork"])


def test_work_whose_end_nobody_tells_is_done_once_more(tmp_path: Path) -> None:
    """A parent that ignores SIGCHLD leaves that to us, and then a fork's end is not known."""
    program = """
import signal
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
with forked(work):
    print("block")
"""
    assert run(tmp_path, "pass", program) == (["block"], ["work in a fork", "work here"])


def test_where_no_process_is_left_the_work_is_done_first(tmp_path: Path) -> None:
    """A limit of processes that is reached slows down, and fails nothing."""
    program = """
def fork():
    raise BlockingIOError
os.fork = fork
with forked(work):
    print(Path("told").read_text().strip())
"""
    assert run(tmp_path, "pass", program) == (["work here"], ["work here"])


def test_an_error_of_work_that_is_not_forked_keeps_the_block_from_running(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where nobody tells how many threads there are, the work is done first, and ends it all."""
    monkeypatch.setattr("quota_ops.stages.forked._THREADS", Path("no such folder"))

    def work() -> None:
        raise ValueError

    ran = []
    with pytest.raises(ValueError, match=r"^$"), forked(work):
        ran.append("block")
    assert ran == []
