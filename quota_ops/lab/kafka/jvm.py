"""Runs Kafka's Java programs in a node's folder: StorageTool to format it, then Kafka."""

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Self

from msgspec import Struct

from quota_ops.jvm.class_archive import ClassArchive, record_classes
from quota_ops.jvm.java import QUICK_START, find_java
from quota_ops.jvm.pinned_jars import Progress
from quota_ops.lab.kafka.config import BrokerConfig
from quota_ops.lab.kafka.jars import archive_folder, fetch_jars, pins_of
from quota_ops.lab.kafka.node import LOG, build_mark, drop_stack
from quota_ops.lab.process import OwnProcess, launch
from quota_ops.model.errors import ClusterTrouble

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
