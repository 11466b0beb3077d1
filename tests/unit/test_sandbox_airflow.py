"""The parts of a local Airflow end together, however they end; a stand-in replaces Airflow."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

STAND_IN = """\
import os, socket, sys, time
from pathlib import Path
if sys.argv[1] == "db":
    sys.exit(0)
if sys.argv[1] == "api-server":
    time.sleep(0.2)  # the scheduler starts no earlier
    listening = socket.create_server(("127.0.0.1", int(os.environ["AIRFLOW__API__PORT"])))
if sys.argv[1] == "scheduler":
    socket.create_connection(("127.0.0.1", int(os.environ["AIRFLOW__API__PORT"]))).close()
if os.fork() == 0:
    os.setpgid(0, 0)  # as Airflow's tasks do
with Path("pids").open("a") as pids:
    pids.write(f"{os.getpid()}\\n")
while not Path(f"{sys.argv[1]}.ends").exists():
    time.sleep(0.02)
"""
PARENT = """\
import os, sys, time
from pathlib import Path
from quota_ops.lab.airflow import parts
from quota_ops.lab.process import launch
command = [sys.executable, "-I", parts.__file__, "--mark", "api-server", "scheduler"]
launch(command, mark="--mark", log=Path("log").resolve(), environment=os.environ, detached=False)
time.sleep(60)
"""


@pytest.fixture
def parent(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Start a process that launched two parts, each with a child in a group of its own.

    The scheduler starts when the API server listens: tasks that cannot reach it would fail.
    """
    (tmp_path / "airflow").mkdir()
    (tmp_path / "airflow" / "__init__.py").touch()
    (tmp_path / "airflow" / "__main__.py").write_text(STAND_IN)
    paths = [str(tmp_path), str(Path(__file__).parents[2])]
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        port = str(bound.getsockname()[1])
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT],
        cwd=tmp_path,
        env={**os.environ, "AIRFLOW__API__PORT": port, "PYTHONPATH": os.pathsep.join(paths)},
    )
    try:
        _wait_for(lambda: len(_pids(tmp_path)) == 4)
        yield parent
    finally:
        parent.kill()
        parent.wait()


def _pids(folder: Path) -> list[int]:
    pids = folder / "pids"
    return [int(line) for line in pids.read_text().split()] if pids.exists() else []


def _alive(pid: int) -> bool:
    try:
        return bool(Path(f"/proc/{pid}/cmdline").read_bytes())
    except OSError:
        return False


def _wait_for(what: Callable[[], bool], seconds: float = 10.0) -> None:
    deadline = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_killed_parent_leaves_no_part(tmp_path: Path, parent: subprocess.Popen[bytes]) -> None:
    """SIGKILL to the parent ends every part and every task."""
    pids = _pids(tmp_path)
    assert all(map(_alive, pids))
    parent.kill()
    _wait_for(lambda: not any(map(_alive, pids)))


@pytest.mark.usefixtures("parent")
def test_no_part_goes_on_without_another(tmp_path: Path) -> None:
    """If one part of Airflow ends, the others end too: half an Airflow only looks alive."""
    pids = _pids(tmp_path)
    (tmp_path / "scheduler.ends").touch()
    _wait_for(lambda: not any(map(_alive, pids)))
