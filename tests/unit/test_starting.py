"""A service gets the time that it needs to start, and one that does not start says why."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from quota_ops.lab import process
from quota_ops.lab.process import OwnProcess, wait_for_start
from quota_ops.model.errors import ClusterTrouble

MARK = "--quota-ops-starting"
TICKS = "import time\nfor tick in range(8): print(f'tick {tick}', flush=True); time.sleep(0.25)\n"
"""A program that writes a line every quarter of a second for two seconds."""


@contextmanager
def start(log: Path, program: str) -> Iterator[OwnProcess]:
    """Run a program with its output in a log."""
    command = [sys.executable, "-c", program, MARK]
    with log.open("w") as output, subprocess.Popen(command, stdout=output) as started:
        yield OwnProcess(pid=started.pid, mark=MARK)
        started.kill()


@pytest.fixture(autouse=True)
def _short_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "STALLED_SECONDS", 1.2)


def test_progress_extends_the_wait(tmp_path: Path) -> None:
    """A service that takes long, but keeps writing to its log, may do so."""
    log = tmp_path / "service.log"
    with start(log, TICKS) as ticking:
        wait_for_start("Kafka", ticking, log, lambda: () if "tick 7" in log.read_text() else "x")


@pytest.mark.parametrize(
    ("program", "why"),
    [
        ("print('no port', flush=True)", "its process ended"),
        ("import time; print('no port', flush=True); time.sleep(20)", "nothing changed for 1 s"),
    ],
    ids=["ended", "stalled"],
)
def test_a_service_that_does_not_start(tmp_path: Path, program: str, why: str) -> None:
    """The error has the silent parts, the reason, the end and the path of the log, and a remedy."""
    log = tmp_path / "service.log"
    with start(log, program) as silent, pytest.raises(ClusterTrouble) as raised:
        wait_for_start("Airflow", silent, log, lambda: {"scheduler", "api-server"})

    assert raised.value.message == (
        f"Airflow did not start: no response from api-server, scheduler, and {why}\n"
        f"The end of {log}:\nno port"
    )
    assert raised.value.remedy == (
        "If the machine was busy, or had too little free memory, run the command again."
    )
