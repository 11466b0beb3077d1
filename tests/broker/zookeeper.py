"""A Kafka 3.9 that keeps its metadata in ZooKeeper, which the sandbox does not."""

import os
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from quota_ops.jvm.java import QUICK_START, find_java
from quota_ops.lab.kafka.broker import can_describe
from quota_ops.lab.kafka.jars import fetch_jars
from quota_ops.lab.process import OwnProcess, launch

_VERSION = "3.9.2"
_SECONDS = 60.0


@contextmanager
def running_zookeeper(home: Path) -> Iterator[tuple[str, str]]:
    """Start it; return the cluster's id and bootstrap.servers until the end of the block."""
    home.mkdir()
    keeper, broker = _free_ports()
    (home / "zookeeper.properties").write_text(
        f"dataDir={home / 'zookeeper'}\nclientPort={keeper}\nclientPortAddress=127.0.0.1\n"
        "admin.enableServer=false\n"
    )
    (home / "server.properties").write_text(
        f"broker.id=1\nzookeeper.connect=127.0.0.1:{keeper}\nlog.dirs={home / 'data'}\n"
        f"listeners=PLAINTEXT://127.0.0.1:{broker}\n"
    )
    with ExitStack() as running:
        for program, settings in (
            ("org.apache.zookeeper.server.ZooKeeperServerMain", "zookeeper.properties"),
            ("kafka.Kafka", "server.properties"),
        ):
            running.callback(_java(home, program, settings).stop, 5.0)
        deadline = time.monotonic() + _SECONDS
        while not can_describe(f"127.0.0.1:{broker}", nodes=1):
            assert time.monotonic() < deadline, (home / "log").read_text()
            time.sleep(0.05)
        lines = (home / "data" / "meta.properties").read_text().split()
        (cluster_id,) = (line[11:] for line in lines if line.startswith("cluster.id="))
        yield cluster_id, f"127.0.0.1:{broker}"


def _java(home: Path, program: str, settings: str) -> OwnProcess:
    mark = f"-Dquota-ops.test={home}/{settings}"
    command = [find_java(), "-Xmx256m", *QUICK_START, mark, program, settings]
    environment = {**os.environ, "CLASSPATH": f"{fetch_jars(_VERSION)}/*"}
    return launch(command, mark=mark, log=home / "log", environment=environment, detached=False)


def _free_ports() -> tuple[int, int]:
    with (
        socket.create_server(("127.0.0.1", 0)) as one,
        socket.create_server(("127.0.0.1", 0)) as other,
    ):
        return one.getsockname()[1], other.getsockname()[1]
