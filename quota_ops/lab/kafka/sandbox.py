"""The sandbox of `quota-ops sandbox`: one broker in the background, with the name `demo`."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from platformdirs import user_state_path

from quota_ops.connections import connections_folder
from quota_ops.jvm.pinned_jars import Progress
from quota_ops.kafka.connection import SANDBOX
from quota_ops.lab.kafka.broker import start_broker
from quota_ops.lab.kafka.config import BrokerConfig
from quota_ops.lab.kafka.jars import DEFAULT_VERSION
from quota_ops.lab.kafka.node import RunningNode, read_node
from quota_ops.lab.kafka.process import lock_file
from quota_ops.model.errors import InvalidInput

DEMO_CLUSTER_ID = "MkU3OEVBNTcwNTJENDM2Qg"
_FIRST_LINE = "# Written by quota-ops sandbox start; quota-ops sandbox stop removes it.\n"


@dataclass(frozen=True, kw_only=True)
class SandboxStatus:
    """The sandbox: its folder, its connection file, and its node (None before the first start).

    `started` is whether this call started it.
    """

    home: Path
    connection: Path
    node: RunningNode | None
    started: bool = False

    @property
    def running(self) -> bool:
        """Whether the broker's process is alive."""
        return self.node is not None and self.node.alive


def find_sandbox() -> SandboxStatus:
    """Return the status of the sandbox without changing it."""
    chosen = os.environ.get("QUOTA_OPS_SANDBOX")
    home = (Path(chosen) if chosen else user_state_path("quota-ops") / "sandbox").resolve()
    node = read_node(home / "node-1")
    return SandboxStatus(home=home, connection=find_connection_file(SANDBOX), node=node)


def start_sandbox(
    *,
    cluster_id: str = DEMO_CLUSTER_ID,
    version: str | None = None,
    progress: Progress = lambda _done, _all: None,
) -> SandboxStatus:
    """Start the sandbox in the background, unless it is running, and write its connection file.

    The default `version` is the running one, or DEFAULT_VERSION. Each version keeps its own data
    across starts. Raises InvalidInput when another version is running, no sandbox wrote the
    connection file, or a folder cannot be written; MissingTool without Java or jars;
    ClusterTrouble when Kafka does not start.
    """
    with _lock_sandbox() as status:
        if status.node and status.running:
            if version not in (None, status.node.version):
                raise InvalidInput(
                    f"The sandbox already runs Kafka {status.node.version}.",
                    f"Run: quota-ops sandbox stop && quota-ops sandbox start --version {version}",
                )
            return status
        check_replaceable(status.connection)
        status.connection.parent.mkdir(parents=True, exist_ok=True)
        config = BrokerConfig(cluster_id=cluster_id, version=version or DEFAULT_VERSION)
        broker = start_broker(config, status.home, detached=True, progress=progress)
        try:
            write_connection(status.connection, broker.bootstrap())
        except BaseException:
            broker.stop()
            raise
        return replace(status, node=broker.nodes[0], started=True)


def stop_sandbox() -> bool:
    """Stop the sandbox and remove its connection file; return whether it was running."""
    with _lock_sandbox() as status:
        running = status.running
        if status.node:
            status.node.stop()
        remove_connection(status.connection)
        return running


@contextmanager
def _lock_sandbox() -> Iterator[SandboxStatus]:
    home = find_sandbox().home
    try:
        with lock_file(home / ".lock"):
            yield find_sandbox()
    except OSError as error:
        if error.filename is None:
            raise
        raise InvalidInput(
            f"the sandbox cannot use {error.filename}: {error.strerror}.",
            "Make it writable, or choose folders with QUOTA_OPS_SANDBOX and QUOTA_OPS_CONNECTIONS.",
        ) from error


def find_connection_file(name: str) -> Path:
    """Return the file that `find_connection` reads for a name."""
    return connections_folder() / f"{name}.properties"


def check_replaceable(file: Path) -> None:
    """Raise InvalidInput when the file exists and no sandbox wrote it."""
    if file.exists() and not _is_sandbox_file(file):
        raise InvalidInput(
            f"{file} is your own connection; the sandbox does not replace it.",
            "Rename it, or set QUOTA_OPS_CONNECTIONS to another folder.",
        )


def write_connection(file: Path, bootstrap: str) -> None:
    """Write a connection to a sandbox broker; raises InvalidInput if the file is the user's own."""
    check_replaceable(file)
    file.parent.mkdir(parents=True, exist_ok=True)
    written = file.with_name(f".{file.name}.{os.getpid()}")
    written.write_text(f"{_FIRST_LINE}bootstrap.servers={bootstrap}\nsecurity.protocol=PLAINTEXT\n")
    written.replace(file)


def remove_connection(file: Path) -> None:
    """Remove a connection file if a sandbox wrote it."""
    if _is_sandbox_file(file):
        file.unlink()


def _is_sandbox_file(file: Path) -> bool:
    return file.is_file() and file.read_bytes().startswith(_FIRST_LINE.encode())
