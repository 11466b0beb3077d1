"""No call waits forever for a name server, a TLS port or a token endpoint."""

import json
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from quota_ops.kafka.client.description import Broker, ClusterDescription
from quota_ops.kafka.cluster import Cluster
from quota_ops.kafka.connection import Connection
from quota_ops.model.errors import Unreachable
from tests.broker.conftest import Listeners
from tests.clock import PROMPTLY

PREFLIGHT = """
import json, socket, sys, time
from quota_ops.kafka.connection import Connection
from quota_ops.kafka.preflight import preflight
silent = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
silent.bind((sys.argv[1], 53))
text = "bootstrap.servers=kafka-1.example:9092,kafka-2.example:9092"
started = time.monotonic()
try:
    preflight(Connection.parse(text, name="demo", source="demo.properties"), None)
except Exception as error:
    took = time.monotonic() - started
    print(json.dumps([took, time.time(), type(error).__name__, str(error)]))
"""
BY_SILENCE = 'mount --bind "$1" /etc/resolv.conf && exec "$2" -c "$3" "$4"'
SERVER = f"127.9.{os.getpid() // 250 % 250}.{1 + os.getpid() % 250}"
"""A name server has port 53, so its address has to be one that no other run of the tests uses."""


def may_mount() -> bool:
    """Whether this process may mount another file for a program of its own."""
    mount = ["unshare", "--mount", "mount", "--bind", "/etc/resolv.conf", "/etc/resolv.conf"]
    if shutil.which(mount[0]) is None:
        return False
    return subprocess.run(mount, capture_output=True, check=False).returncode == 0


@pytest.mark.skipif(not may_mount(), reason="only root on Linux can change the name server")
def test_a_silent_name_server(tmp_path: Path) -> None:
    """A silent name server is an error within five seconds, and the process ends with it."""
    (tmp_path / "resolv.conf").write_text(f"nameserver {SERVER}\n")
    ran = subprocess.run(
        [
            *("unshare", "--mount", "/bin/sh", "-c", BY_SILENCE, "sh"),
            *(str(tmp_path / "resolv.conf"), sys.executable, PREFLIGHT, SERVER),
        ],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.stderr == ""
    took, ended, error, words = json.loads(ran.stdout)
    assert error == "Unreachable"
    assert words == (
        "connection demo: no name server responds for kafka-1.example.\n"
        "  Check this machine's network and its name servers. Nothing was read or changed."
    )
    assert took < PROMPTLY
    assert time.time() - ended < PROMPTLY, "a thread still waits for the name server"


@pytest.fixture
def silence(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Make lookups end only when the test does."""
    over = threading.Event()

    def silent(*_host: object, **_kind: object) -> None:
        over.wait(30)
        raise socket.gaierror(socket.EAI_AGAIN, "the test is over")

    monkeypatch.setattr(socket, "getaddrinfo", silent)
    yield
    over.set()


def unreachable(text: str, broker: Broker, listeners: Listeners) -> tuple[str, float]:
    """Return the error about an unreachable broker, and its seconds."""
    connection = Connection.parse(
        text, name="demo", source="demo.properties", folder=listeners.folder
    )
    cluster = Cluster(connection, ClusterDescription("", (broker,)), timeout=1.0)
    started = time.monotonic()
    with pytest.raises(Unreachable) as error:
        cluster.describe(broker.id)
    return error.value.message, time.monotonic() - started


@pytest.mark.usefixtures("silence")
def test_a_lookup_by_kafka_python(listeners: Listeners) -> None:
    """kafka-python's own lookup has no end; quota-ops' lookup ends with the timeout of the call."""
    broker = Broker(1, "kafka-1.example", 9092)
    words, took = unreachable("bootstrap.servers=kafka-1.example:9092", broker, listeners)
    assert words == (
        "connection demo: broker 1 at kafka-1.example:9092 cannot be reached: "
        "no name server responded for kafka-1.example within 1 s. Nothing was sent."
    )
    assert took < 4


def test_a_host_that_is_not_known_to_kafka_python(listeners: Listeners) -> None:
    """A broker that advertises an unknown host is an error that names it."""
    broker = Broker(1, "no-such-host.invalid", 9092)
    words, _ = unreachable("bootstrap.servers=127.0.0.1:9092", broker, listeners)
    assert words == (
        "connection demo: broker 1 at no-such-host.invalid:9092 cannot be reached: "
        "the host no-such-host.invalid is not known: Name or service not known. Nothing was sent."
    )


def test_a_tls_port_that_is_silent_to_kafka_python(listeners: Listeners) -> None:
    """A port that accepts the connection and never speaks TLS costs the timeout of the call."""
    host, _, port = listeners.addresses["SILENT"].partition(":")
    text = f"bootstrap.servers={host}:{port}\nsecurity.protocol=ssl\nssl.ca.location=ca.pem"
    words, took = unreachable(text, Broker(1, host, int(port)), listeners)
    assert words.endswith("cannot be reached: timed out after 1 s. Nothing was sent.")
    assert took < 4
