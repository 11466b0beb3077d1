"""A node of a sandbox Kafka: its folder, its Java programs and its process."""

import json
import os
import signal
import subprocess
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from msgspec import Struct

from quota_ops.jvm.class_archive import ClassArchive, record_classes
from quota_ops.jvm.java import QUICK_START, find_java
from quota_ops.jvm.pinned_jars import Progress
from quota_ops.lab.kafka.config import PLAIN, BrokerConfig, Ports
from quota_ops.lab.kafka.jars import archive_folder, fetch_jars, pins_of
from quota_ops.lab.process import OwnProcess, launch
from quota_ops.model.errors import ClusterTrouble

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
    names = ("id", "cluster_id", "version", "pid", "ports", "started")
    (node.folder / _STATE).write_text(json.dumps({name: getattr(node, name) for name in names}))


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


FORMAT, SERVE = "kafka.tools.StorageTool", "kafka.Kafka"
"""The main classes of the two programs."""


class Jvm(Struct, frozen=True, kw_only=True):
    """A Java runtime with a Kafka version on its class path.

    It uses the class archives that the set-up made, or records new ones in the folder `recording`.
    """

    java: str
    version: str
    jars: Sequence[Path]
    heap: str
    recording: Path | None = None

    @classmethod
    def of(cls, config: BrokerConfig, progress: Progress, recording: Path | None = None) -> Self:
        """Find Java and the jars. Raises MissingTool without them."""
        java = find_java()
        jars = fetch_jars(config.version, progress)
        names = sorted(pins_of(config.version).checksums)
        return cls(
            java=java,
            version=config.version,
            jars=tuple(jars / name for name in names),
            heap=config.heap,
            recording=recording,
        )

    def archive(self, program: str) -> ClassArchive:
        """Return the class archive of a program; it may not exist yet."""
        return ClassArchive(
            folder=archive_folder(self.version),
            program=program,
            java=self.java,
            class_path=self.jars,
        )

    def format(self, folders: Sequence[Path], config: BrokerConfig) -> None:
        """Format the new data folders. Raises ClusterTrouble with the output of StorageTool."""
        arguments = ("format", "--cluster-id", config.cluster_id, "--config", "server.properties")
        running = [
            subprocess.Popen(
                self._command(folder, FORMAT, *arguments),
                cwd=folder,
                env=self._environment(),
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
            for folder in folders
            if not (folder / config.data / "meta.properties").exists()
        ]
        for tool, output in [(tool, tool.communicate()[0]) for tool in running]:
            if tool.returncode != 0:
                reason = "\n".join(drop_stack(output.splitlines()))
                raise ClusterTrouble(f"Kafka could not format its data folder:\n{reason}")

    def launch(self, folder: Path, *, detached: bool) -> OwnProcess:
        """Start the node in the folder."""
        return launch(
            self._command(folder, SERVE, "server.properties"),
            mark=build_mark(folder),
            log=folder / LOG,
            environment=self._environment(),
            detached=detached,
        )

    def _command(self, folder: Path, program: str, *arguments: str) -> list[str]:
        options = [f"-Xmx{self.heap}", *QUICK_START, f"-Djava.io.tmpdir={folder / 'tmp'}"]
        if self.recording:
            options += record_classes(self.recording / program)
        else:
            options += self.archive(program).options()
        return [self.java, *options, build_mark(folder), program, *arguments]

    def _environment(self) -> dict[str, str]:
        # The archive requires the jars first. None of them has log settings, so those in "." apply.
        return {**os.environ, "CLASSPATH": os.pathsep.join([*map(str, self.jars), "."])}
