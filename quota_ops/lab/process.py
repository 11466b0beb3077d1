"""Starts child processes, waits until they respond, and identifies them before it signals them."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, ClassVar, Self, cast

from quota_ops.model.errors import ClusterTrouble

_LAUNCH = Path(__file__).with_name("launch.py")
_MOST_READS = 10_000
_STATE = "server.json"


class StoppedAtEnd:
    """A base class of context managers that call `stop` at the end of the block."""

    def stop(self) -> None:
        """Stop, and return when everything has ended."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


@dataclass(frozen=True, kw_only=True)
class OwnProcess:
    """A process with a unique argument, its mark; `launcher` is set if it is attached."""

    pid: int
    mark: str
    launcher: subprocess.Popen[str] | None = field(default=None, repr=False, compare=False)

    @property
    def alive(self) -> bool:
        """Whether the process is alive; another process with the same id does not count."""
        return self.mark in _command_line(self.pid)

    def send(self, number: signal.Signals) -> None:
        """Send a signal to the process, unless another process has its id now."""
        if self.alive:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def stop(self, grace: float = 30.0) -> None:
        """Send SIGTERM and wait until the process has ended; after `grace` seconds send SIGKILL."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            self.send(number)
            deadline = time.monotonic() + grace
            while self.alive and time.monotonic() < deadline:
                time.sleep(0.05)
        if self.launcher:
            self.launcher.communicate()


@dataclass(frozen=True, kw_only=True)
class Server(StoppedAtEnd):
    """A server of one process with a home of its own, running or not."""

    MARK: ClassVar[str]
    """The mark of its process, with {} for its home."""
    home: Path
    port: int
    process: OwnProcess = field(compare=False)

    @classmethod
    def find(cls, home: Path) -> Self | None:
        """Return the server last started in a home, running or not; None if there was none."""
        home = home.resolve()
        try:
            state = json.loads((home / _STATE).read_text())
            process = OwnProcess(pid=state.pop("pid"), mark=cls.MARK.format(home))
            return cls(home=home, process=process, **state)
        except (OSError, ValueError, KeyError, TypeError):  # or a file that a crash left incomplete
            return None

    def save(self, **more: str) -> None:
        """Write for `find` what it needs, with the values of further fields."""
        state = {"pid": self.process.pid, "port": self.port, **more}
        write_private(self.home / _STATE, json.dumps(state))

    @property
    def running(self) -> bool:
        """Whether its process is alive."""
        return self.process.alive

    def stop(self) -> None:
        """Stop it and all that it started, and return when it has ended."""
        self.process.stop()


def write_private(file: Path, content: str) -> None:
    """Write a file that may contain a token, and that nobody else may read."""
    file.touch(mode=0o600)
    file.write_text(content)


def launch(
    command: Sequence[str], *, mark: str, log: Path, environment: Mapping[str, str], detached: bool
) -> OwnProcess:
    """Start a command in the folder of its log; one of its arguments is the mark.

    The command ends with this process, even if this process is killed, unless `detached`.
    """
    mode = "detached" if detached else "attached"
    launcher = subprocess.Popen(
        [sys.executable, "-I", "-S", str(_LAUNCH), mode, log.name, *command],
        cwd=log.parent,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,  # Ctrl-C reaches only the parent, which then stops the process
    )
    pid = int(cast("IO[str]", launcher.stdout).readline())
    if detached:
        launcher.communicate()  # the launcher has ended
    return OwnProcess(pid=pid, mark=mark, launcher=launcher)


def _command_line(pid: int) -> str:
    """Return a process's arguments; empty if it has ended or is a zombie."""
    if not Path("/proc/self/cmdline").exists():
        ps = [shutil.which("ps") or "ps", "-ww", "-o", "command=", "-p", str(pid)]
        return subprocess.run(ps, capture_output=True, text=True, check=False).stdout
    with suppress(OSError):
        for _ in range(_MOST_READS):
            if arguments := Path(f"/proc/{pid}/cmdline").read_bytes():
                return os.fsdecode(arguments)
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
            if state == "Z":
                break
            time.sleep(0.001)  # a starting process gets its arguments later: seconds on a busy disk
    return ""


def choose_port(wanted: int) -> int:
    """Return a free port of 127.0.0.1, which is the wanted one unless it is taken or 0."""
    try:
        with socket.create_server(("127.0.0.1", wanted)) as bound:
            return int(bound.getsockname()[1])
    except OSError:
        return choose_port(0)


STALLED_SECONDS = 180.0
"""How long a service may start without a new line in its log, or another part that responds."""
LONGEST_SECONDS = 1200.0
_TAIL_LINES = 20


def wait_for_start(
    service: str, process: OwnProcess, log: Path, list_silent: Callable[[], Collection[str]]
) -> None:
    """Return when `list_silent` lists no part of the service that does not respond yet.

    A busy machine gets the time that it needs. Raises ClusterTrouble when the process ends, when
    nothing changes for STALLED_SECONDS, or after 20 minutes: with the parts that did not respond,
    the reason, and the end and the path of the log.
    """
    began = changed = time.monotonic()
    seen: object = None
    while silent := sorted(list_silent()):
        now, state = time.monotonic(), (silent, log.stat().st_size)
        if state != seen:
            seen, changed = state, now
        if not process.alive:
            why = "its process ended"
        elif now - changed > STALLED_SECONDS:
            why = f"nothing changed for {STALLED_SECONDS:.0f} s"
        elif now - began > LONGEST_SECONDS:
            why = f"it was not ready after {LONGEST_SECONDS:.0f} s"
        else:
            time.sleep(0.2)
            continue
        raise ClusterTrouble(
            f"{service} did not start: no response from {', '.join(silent)}, and {why}\n"
            + read_end(log),
            "If the machine was busy, or had too little free memory, run the command again.",
        )


def read_end(log: Path) -> str:
    """Return the last lines of a log, with its path."""
    lines = log.read_text(errors="replace").splitlines()[-_TAIL_LINES:]
    return "\n".join([f"The end of {log}:", *lines])
