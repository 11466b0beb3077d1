"""One running Kafka node: a process that is recognised before it is signalled."""

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from quota_ops.sandbox.config import PLAIN, Ports

LOG = "broker.log"
_STATE = "node.json"
_TAIL_LINES = 20
_GLANCES = 200


@dataclass(frozen=True, kw_only=True)
class RunningNode:
    """A node's process, its folder (server.properties, broker.log, data) and its ports."""

    id: int
    cluster_id: str
    version: str
    pid: int
    ports: Ports
    folder: Path
    launcher: subprocess.Popen[str] | None = field(default=None, repr=False, compare=False)

    def address(self, listener: str = PLAIN) -> str:
        """Return the `host:port` of a listener."""
        return f"127.0.0.1:{self.ports[listener]}"

    @property
    def log(self) -> Path:
        """The file with everything that the node has written since its start."""
        return self.folder / LOG

    @property
    def alive(self) -> bool:
        """Whether the process is there and is this node's, not another with its old id."""
        return mark_of(self.folder) in _command_line(self.pid)

    def send(self, number: signal.Signals) -> None:
        """Send the process a signal, if it is still this node's."""
        if self.alive:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def stop(self, grace: float = 30.0) -> None:
        """Send SIGTERM and wait until the process is gone; after `grace` seconds send SIGKILL."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            self.send(number)
            deadline = time.monotonic() + grace
            while self.alive and time.monotonic() < deadline:
                time.sleep(0.05)
        if self.launcher:
            self.launcher.communicate()

    def log_tail(self) -> str:
        """Return the last lines of the log, without Java's stacks, for an error message."""
        lines = without_stack(self.log.read_text(errors="replace").splitlines())
        return "\n".join(lines[-_TAIL_LINES:])


def remember(node: RunningNode) -> None:
    """Write down in the node's folder which process it is, for `last_known`."""
    told = {
        "id": node.id,
        "cluster_id": node.cluster_id,
        "version": node.version,
        "pid": node.pid,
        "ports": dict(node.ports),
    }
    (node.folder / _STATE).write_text(json.dumps(told))


def last_known(folder: Path) -> RunningNode | None:
    """Return the node that was last started in a folder, dead or alive."""
    try:
        return RunningNode(folder=folder, **json.loads((folder / _STATE).read_text()))
    except (OSError, ValueError, TypeError):  # none, or one that a crash left half written
        return None


def without_stack(lines: Iterable[str]) -> list[str]:
    """Return what Java wrote without the places in its code."""
    return [line for line in lines if not line.startswith("\t")]


def mark_of(folder: Path) -> str:
    """Return the argument by which the process of the node in this folder is recognised."""
    return f"-Dquota-ops.node={folder}/"


def _command_line(pid: int) -> str:
    """Return a process's arguments; empty when it is gone, or dead and not yet collected."""
    if not Path("/proc/self/cmdline").exists():
        ps = [shutil.which("ps") or "ps", "-ww", "-o", "command=", "-p", str(pid)]
        return subprocess.run(ps, capture_output=True, text=True, check=False).stdout
    with suppress(OSError):
        for _ in range(_GLANCES):
            if arguments := Path(f"/proc/{pid}/cmdline").read_bytes():
                return os.fsdecode(arguments)
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
            if state == "Z":
                break
            time.sleep(0.001)  # it is just being started: its arguments come a moment later
    return ""
