"""A running Kafka node: its process, its folder and its ports."""

import json
import signal
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

from quota_ops.lab.kafka.config import PLAIN, Ports
from quota_ops.lab.process import OwnProcess

LOG = "broker.log"
_STATE = "node.json"
_TAIL_LINES = 20


@dataclass(frozen=True, kw_only=True)
class RunningNode(OwnProcess):
    """A node's process, its folder (server.properties, broker.log, data) and its ports.

    `started` is when the process was started, in seconds since 1970.
    """

    id: int
    cluster_id: str
    version: str
    ports: Ports
    folder: Path
    started: float

    def address(self, listener: str = PLAIN) -> str:
        """Return the `host:port` of a listener."""
        return f"127.0.0.1:{self.ports[listener]}"

    @property
    def log(self) -> Path:
        """The file with the node's output since its start."""
        return self.folder / LOG

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
        "started": node.started,
    }
    (node.folder / _STATE).write_text(json.dumps(state))


def read_node(folder: Path) -> RunningNode | None:
    """Return the node that was last started in a folder, dead or alive."""
    try:
        state = json.loads((folder / _STATE).read_text())
        return RunningNode(folder=folder, mark=build_mark(folder), **state)
    except (OSError, ValueError, TypeError):  # no file, or one that a crash left incomplete
        return None


def stop_nodes(nodes: Collection[RunningNode]) -> None:
    """Stop the nodes of a cluster, and return when their processes are gone."""
    # The last node would wait for a quorum of nodes that have already stopped.
    grace = 30.0 if len(nodes) == 1 else 2.0
    for node in nodes:
        node.send(signal.SIGTERM)
    for node in nodes:
        node.stop(grace)


def drop_stack(lines: Iterable[str]) -> list[str]:
    """Return Java's output without stack traces."""
    return [line for line in lines if not line.startswith("\t")]


def build_mark(folder: Path) -> str:
    """Return the argument that identifies the process of the node in this folder."""
    return f"-Dquota-ops.node={folder}/"
