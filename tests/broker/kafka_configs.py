"""Kafka's own kafka-configs.sh, as a process on its own jars."""

import os
import subprocess

from quota_ops.lab.kafka.broker import RunningBroker
from quota_ops.lab.kafka.jars import fetch_jars
from quota_ops.sql.java import QUICK_START, find_java


def kafka_configs(broker: RunningBroker, *arguments: str) -> str:
    """Run Kafka's command; return its output."""
    options = (*QUICK_START, "-Dsun.jnu.encoding=UTF-8", "-Dstdout.encoding=UTF-8")
    ran = subprocess.run(
        [
            *(find_java(), *options, "-Dfile.encoding=UTF-8", "-cp", f"{fetch_jars()}/*"),
            *("kafka.admin.ConfigCommand", "--bootstrap-server", broker.bootstrap(), *arguments),
        ],
        env={**os.environ, "LC_ALL": "C.UTF-8"},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout
