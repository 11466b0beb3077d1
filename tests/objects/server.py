"""A real S3 server on this machine: SeaweedFS, on loopback and free ports."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException
from pathlib import Path

from quota_ops.lab.kafka import launch

_SERVICES = ("master", "volume", "filer", "s3")
_PATIENCE = 60.0
ACTIONS = {
    "writer": ["Admin", "Read", "Write", "List"],
    "reader": ["Read", "List"],
    "anonymous": ["Read", "Write", "List"],
}
"""What each identity may do; a request without a signature is of `anonymous`."""


@dataclass(frozen=True, slots=True)
class S3Server:
    """A running server; each identity's secret is its name and `-secret`."""

    endpoint: str
    filer: str

    def environment(self, identity: str = "writer") -> Mapping[str, str]:
        """Return the variables that a client needs; instance credentials are out of reach."""
        return {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ALLOW_HTTP": "true",
            "AWS_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": identity,
            "AWS_SECRET_ACCESS_KEY": f"{identity}-secret",
            "AWS_METADATA_ENDPOINT": "http://127.0.0.1:9",
        }

    def create_bucket(self, name: str) -> None:
        """Create a bucket; the server has room for about ten."""
        _send(self.filer, "POST", f"/buckets/{name}/?op=mkdir")


@contextmanager
def start_s3(folder: Path) -> Iterator[S3Server]:
    """Start a server with the identities of `ACTIONS`, and stop it at the end."""
    identities = [
        {
            "name": name,
            "credentials": [{"accessKey": name, "secretKey": f"{name}-secret"}],
            "actions": actions,
        }
        for name, actions in ACTIONS.items()
    ]
    config = folder / "s3.json"
    config.write_text(json.dumps({"identities": identities}))
    ports = _free_ports(2 * len(_SERVICES))
    options = [
        f"-{service}.port{kind}={ports.pop()}" for service in _SERVICES for kind in ("", ".grpc")
    ]
    by_name = dict(option[1:].split("=") for option in options)
    command = [
        str(Path(sys.executable).with_name("weed")),
        "-logtostderr=true",
        "server",
        "-s3",
        f"-dir={folder}",
        "-ip=127.0.0.1",
        "-ip.bind=127.0.0.1",
        *options,
        f"-s3.config={config}",
        "-s3.iam=false",
        "-s3.port.iceberg=0",
        "-s3.port.lance=0",
        "-master.telemetry=false",
        "-master.electionTimeout=1s",
        "-master.volumeSizeLimitMB=64",
        "-volume.max=100",
        "-volume.preStopSeconds=0",
    ]
    server = S3Server(
        f"http://127.0.0.1:{by_name['s3.port']}", f"http://127.0.0.1:{by_name['filer.port']}"
    )
    log = folder / "log"
    launcher = subprocess.Popen(
        [sys.executable, launch.__file__, "attached", str(log), *command],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert launcher.stdout is not None
    pid = int(launcher.stdout.readline())
    try:
        _wait(server, launcher, log)
        yield server
    finally:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)  # nothing that it stores is read again
        launcher.communicate()


def _wait(server: S3Server, process: "subprocess.Popen[bytes]", log: Path) -> None:
    """Wait until the server stores an object."""
    deadline = time.monotonic() + _PATIENCE
    while time.monotonic() < deadline and process.poll() is None:
        with suppress(OSError, HTTPException):
            _send(server.filer, "PUT", "/probe", b"1")
            _send(server.endpoint, "GET", "/status")
            return
        time.sleep(0.05)
    raise RuntimeError(f"the S3 server did not start: {log.read_text()[-2000:]}")


def _send(address: str, method: str, path: str, body: bytes | None = None) -> None:
    """Send a request; OSError if it does not succeed."""
    connection = HTTPConnection(address.removeprefix("http://"), timeout=5)
    try:
        connection.request(method, path, body)
        status = connection.getresponse().status
    finally:
        connection.close()
    if status >= HTTPStatus.BAD_REQUEST:
        raise OSError(f"{method} {path}: {status}")


def _free_ports(count: int) -> list[int]:
    """Return ports that were free at the same moment."""
    with ExitStack() as stack:
        sockets = [
            stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)
        ]
        return [one.getsockname()[1] for one in sockets]
