"""Kafka's own kafka-configs.sh, as a process on its own jars."""

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from quota_ops.jvm.java import QUICK_START
from quota_ops.lab.kafka.broker import RunningBroker
from quota_ops.lab.kafka.config import BrokerConfig
from quota_ops.lab.kafka.jvm import SERVE, Jvm


def kafka_configs(broker: RunningBroker, *arguments: str) -> str:
    """Run Kafka's command; return its output."""
    ran = run_command(broker.bootstrap(), arguments)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def run_command(
    bootstrap: str, arguments: Sequence[str], folder: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run Kafka's command in a folder, with the class archive of the broker.

    The archive has most of the classes that the command loads too, which halves its CPU time.
    """
    jvm = Jvm.of(BrokerConfig(cluster_id=""), lambda _done, _all: None)
    encodings = ("file.encoding", "stdout.encoding", "sun.jnu.encoding")
    options = (*QUICK_START, *jvm.archive(SERVE).options())
    program = ("kafka.admin.ConfigCommand", "--bootstrap-server", bootstrap)
    return subprocess.run(
        [jvm.java, *options, *(f"-D{name}=UTF-8" for name in encodings), *program, *arguments],
        # The class path starts as the archive's does.
        env={**os.environ, "LC_ALL": "C.UTF-8", "CLASSPATH": os.pathsep.join(map(str, jvm.jars))},
        cwd=folder,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
