"""A running Kafka node: its process, its folder and its ports."""

import json
import signal
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from quota_ops.lab.kafka.config import PLAIN, Ports
from quota_ops.lab.kafka.process import OwnProcess

LOG = "broker.log"
_STATE = "node.json"
_TAIL_LINES = 20


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
        """The file with the node's output since its start."""
        return self.folder / LOG

    @property
    def process(self) -> OwnProcess:
        """The node's process, dead or alive."""
        return OwnProcess(pid=self.pid, mark=build_mark(self.folder), launcher=self.launcher)

    @property
    def alive(self) -> bool:
        """Whether the node's process is alive; another process with the same id does not count."""
        return self.process.alive

    def send(self, number: signal.Signals) -> None:
        """Send a signal to the process, if it still belongs to this node."""
        self.process.send(number)

    def stop(self, grace: float = 30.0) -> None:
        """Send SIGTERM and wait until the process has ended; after `grace` seconds send SIGKILL."""
        self.process.stop(grace)

    def log_tail(self) -> str:
        """Return the last lines of the log, without Java's stacks, for an error message."""
        lines = drop_stack(self.log.read_text(errors="replace").splitlines())
        return "\n".join(lines[-_TAIL_LINES:])


def save_node(node: RunningNode) -> None:
    """Write the node's process id and ports to its folder, for `read_node`."""
    state = {
        "id": node.id,
        "cluster_id": node.cluster_id,
        "version": node.version,
        "pid": node.pid,
        "ports": dict(node.ports),
    }
    (node.folder / _STATE).write_text(json.dumps(state))


def read_node(folder: Path) -> RunningNode | None:
    """Return the node that was last started in a folder, dead or alive."""
    try:
        return RunningNode(folder=folder, **json.loads((folder / _STATE).read_text()))
    except (OSError, ValueError, TypeError):  # no file, or one that a crash left incomplete
        return None


def drop_stack(lines: Iterable[str]) -> list[str]:
    """Return Java's output without stack traces."""
    return [line for line in lines if not line.startswith("\t")]


def build_mark(folder: Path) -> str:
    """Return the argument that identifies the process of the node in this folder."""
    return f"-Dquota-ops.node={folder}/"
