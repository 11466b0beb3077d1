"""Runs the parts of a local Airflow; when one of them or this program ends, all end.

Run by its path: `python parts.py MARK PART...`, in AIRFLOW_HOME. It replaces
`airflow standalone`, whose log servers listen on every address and whose children outlive it.
It imports only the standard library.
"""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

_AIRFLOW = (sys.executable, "-P", "-m", "airflow")
_PARTS = {
    "api-server": (),
    "scheduler": ("--skip-serve-logs",),
    "dag-processor": (),
    "triggerer": ("--skip-serve-logs",),
}
_GRACE_SECONDS = 6.0


def main(_mark: str, *parts: str) -> int:
    """Migrate the database, start the parts, and wait until the first one ends."""
    _end_all_when_killed()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        subprocess.run([*_AIRFLOW, "db", "migrate"], check=True)
        running: list[subprocess.Popen[bytes]] = []
        for part in parts:
            if part == "scheduler":  # a task that cannot reach the API server fails
                _wait_for_api_server(running)
            running.append(subprocess.Popen([*_AIRFLOW, part, *_PARTS[part]]))
        while _are_alive(running):
            time.sleep(0.1)
    finally:
        _end_all()
    return 1


def _are_alive(parts: list[subprocess.Popen[bytes]]) -> bool:
    return all(part.poll() is None for part in parts)


def _wait_for_api_server(parts: list[subprocess.Popen[bytes]]) -> None:
    """Wait until the API server listens on its port, or a part has ended."""
    address = ("127.0.0.1", int(os.environ["AIRFLOW__API__PORT"]))
    while _are_alive(parts):
        with socket.socket() as client:
            if client.connect_ex(address) == 0:
                return
        time.sleep(0.1)


def _end_all_when_killed() -> None:
    """Fork a process that waits until this one ends, and then ends all others.

    No part inherits the write end of the pipe, so SIGKILL closes it too.
    """
    read_end, write_end = os.pipe()
    if os.fork() == 0:
        os.close(write_end)
        os.read(read_end, 1)
        _end_all()
        os._exit(0)
    os.close(read_end)


def _end_all() -> None:
    """End every process of this session, including tasks, which have their own process groups."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    for number in (signal.SIGTERM, signal.SIGKILL):
        for pid in _list_others():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
        deadline = time.monotonic() + _GRACE_SECONDS
        while any(_list_others()) and time.monotonic() < deadline:
            time.sleep(0.05)


def _list_others() -> Iterator[int]:
    """Yield the living processes of this session except this one."""
    for pid in _list_living():
        with contextlib.suppress(OSError):
            if pid != os.getpid() and os.getsid(pid) == os.getsid(0):
                yield pid


def _list_living() -> Iterator[int]:
    """Yield every process except zombies."""
    if Path("/proc/self").exists():
        for arguments in Path("/proc").glob("[0-9]*/cmdline"):
            with contextlib.suppress(OSError):
                if arguments.read_bytes():
                    yield int(arguments.parent.name)
        return
    ps = ["/bin/ps", "-A", "-o", "pid=,stat="]
    listed = subprocess.run(ps, capture_output=True, check=True)
    for pid, state in (line.split(maxsplit=1) for line in listed.stdout.decode().splitlines()):
        if not state.startswith("Z"):
            yield int(pid)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
