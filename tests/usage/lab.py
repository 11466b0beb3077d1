"""Real brokers with the JMX exporter, and a real Prometheus that scrapes them."""

import json
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.request import urlopen

import pytest
from platformdirs import user_cache_path

from quota_ops.jvm.pinned_jars import PinnedJars, read_checksums
from quota_ops.lab.kafka.broker import RunningBroker, start_broker
from quota_ops.lab.kafka.config import BrokerConfig

HERE = Path(__file__).parent
RULES = HERE.parents[1] / "docs/examples/usage/jmx_exporter.yml"
AGENT = PinnedJars(
    title="the JMX exporter", ivy=HERE / "agent/ivy.xml", checksums=read_checksums(HERE / "agent")
)


def fetch_agent() -> Path:
    """Return the jar of the JMX exporter, which is fetched once from Maven Central."""
    (name,) = AGENT.checksums
    folder = user_cache_path("quota-ops") / "jmx-exporter"
    AGENT.install(folder)
    return folder / name


def free_port() -> int:
    """Return a port of the loopback interface that is free now."""
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])


@dataclass(frozen=True)
class Exported:
    """A Kafka whose nodes export their metrics, and the address of each node's exporter."""

    broker: RunningBroker
    exporters: Mapping[int, str]


@contextmanager
def start_exported(config: BrokerConfig, home: Path, rules: Path = RULES) -> Iterator[Exported]:
    """Start a Kafka with the JMX exporter in each node."""
    jar, exporters = fetch_agent(), {}
    for node in range(1, config.nodes + 1):
        folder = home / f"node-{node}"
        folder.mkdir(parents=True)
        exporters[node] = f"127.0.0.1:{free_port()}"
        argument = f"-javaagent:{jar}={exporters[node]}:{rules}\n"
        (folder / "agent.args").write_text(argument, encoding="ascii")
    (home / "agent.args").touch()
    with pytest.MonkeyPatch.context() as patch:
        # Java reads the file in the folder where it starts: here, or that of a node.
        patch.chdir(home)
        patch.setenv("JDK_JAVA_OPTIONS", "@agent.args")
        running = start_broker(config, home)
    with running:
        yield Exported(running, exporters)


@dataclass(frozen=True)
class Prometheus:
    """A running Prometheus."""

    url: str
    process: subprocess.Popen[bytes]

    def stop(self) -> None:
        """Stop it, and return when it is gone."""
        self.process.terminate()
        self.process.wait(20)


@contextmanager
def start_prometheus(
    home: Path,
    targets: Mapping[str, str],
    seconds: int = 1,
    *,
    flags: Sequence[str] = (),
    cores: int = 1,
) -> Iterator[Prometheus]:
    """Start a Prometheus that scrapes `targets`, by the name in the label `instance`."""
    home.mkdir(parents=True, exist_ok=True)
    settings = {
        "global": {"scrape_interval": f"{seconds}s", "scrape_timeout": f"{seconds}s"},
        "scrape_configs": [
            {
                "job_name": "kafka",
                "static_configs": [
                    {"targets": [address], "labels": {"cluster": "orders", "instance": name}}
                    for name, address in targets.items()
                ],
            }
        ],
    }
    (home / "prometheus.json").write_text(json.dumps(settings), encoding="utf-8")
    address = f"127.0.0.1:{free_port()}"
    program = shutil.which("prometheus")
    assert program, "apt-get install prometheus"
    with (home / "prometheus.log").open("wb") as log:
        process = subprocess.Popen(
            [
                program,
                f"--config.file={home / 'prometheus.json'}",
                f"--storage.tsdb.path={home / 'data'}",
                f"--web.listen-address={address}",
                "--storage.tsdb.retention.time=10y",
                *flags,
            ],
            stdout=log,
            stderr=subprocess.STDOUT,
            env={**os.environ, "GOMAXPROCS": str(cores)},
        )
    running = Prometheus(f"http://{address}", process)
    try:
        _wait_until_ready(running.url, home / "prometheus.log")
        yield running
    finally:
        running.stop()


def _wait_until_ready(url: str, log: Path) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            with urlopen(f"{url}/-/ready", timeout=5) as response:  # noqa: S310 - loopback
                if response.status == 200:
                    return
        except OSError:
            time.sleep(0.1)
    raise AssertionError(log.read_text(encoding="utf-8"))
