"""A launched process ends with its parent, however that ends; a detached one continues."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from quota_ops.lab import launch
from quota_ops.lab.kafka.node import build_mark
from quota_ops.lab.process import OwnProcess
from tests.looking import seen_in_time
from tests.signals import signals_taken

PARENT = """\
import subprocess, sys, time
pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "start_new_session": True}
launched = subprocess.Popen(sys.argv[1:], **pipes)
print(launched.stdout.readline().decode(), flush=True)
time.sleep(60)
"""


def start(mode: str, folder: Path) -> tuple[subprocess.Popen[str], OwnProcess]:
    """Start a parent that launches a sleeper, in a process group of its own."""
    sleeper = [sys.executable, "-c", "import time; time.sleep(60)", build_mark(folder)]
    launcher = [sys.executable, launch.__file__, mode, str(folder / "log"), *sleeper]
    with signals_taken():
        parent = subprocess.Popen(
            [sys.executable, "-c", PARENT, *launcher],
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
    assert parent.stdout
    pid = int(parent.stdout.readline())
    return parent, OwnProcess(pid=pid, mark=build_mark(folder))


@pytest.mark.parametrize("signal_number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_the_process_ends_with_its_parents_group(
    tmp_path: Path, signal_number: signal.Signals
) -> None:
    """Killing the parent's whole group leaves no orphan: the closed pipe ends the launcher."""
    parent, node = start("attached", tmp_path)
    assert node.alive
    os.killpg(parent.pid, signal_number)
    parent.communicate()
    assert not seen_in_time(lambda: node.alive, expected=False)


def test_a_detached_process_lives_on(tmp_path: Path) -> None:
    """A detached process outlives its parent, until it is stopped by its id."""
    parent, node = start("detached", tmp_path)
    os.killpg(parent.pid, signal.SIGKILL)
    parent.communicate()
    time.sleep(0.2)
    assert node.alive
    node.stop()
    assert not node.alive
