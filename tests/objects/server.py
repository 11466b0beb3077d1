"""A real S3 server on loopback, SeaweedFS, with identities that may do different things."""

import json
import socket
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException
from pathlib import Path

from quota_ops.lab.process import OwnProcess, launch

ACTIONS = {
    "writer": ["Admin", "Read", "Write", "List"],
    "reader": ["Read", "List"],
    "anonymous": ["Admin", "Read", "Write", "List"],
}
"""What each identity may do; a request without a signature is of `anonymous`."""
_SERVICES = ("master", "volume", "filer", "s3")
_NAMES = tuple(f"{service}.port{kind}" for service in _SERVICES for kind in ("", ".grpc"))
_PATIENCE = 60.0
_LOG = "s3.log"


@dataclass(frozen=True, slots=True)
class S3Server:
    """A server, running or not; the secret of each identity is its name and `-secret`."""

    folder: Path
    ports: Mapping[str, int]
    process: OwnProcess = field(compare=False)

    @property
    def endpoint(self) -> str:
        """The address of its S3 interface."""
        return f"http://127.0.0.1:{self.ports['s3.port']}"

    def environment(self, identity: str = "writer") -> dict[str, str]:
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
        """Create a bucket, unless it exists; the server has room for about ten."""
        _send(self._filer, "POST", f"/buckets/{name}/?op=mkdir", accepted=HTTPStatus.CONFLICT)

    def wait(self) -> None:
        """Wait until the server stores an object.

        Raises AssertionError if it ends or takes too long.
        """
        deadline = time.monotonic() + _PATIENCE
        while time.monotonic() < deadline and self.process.alive:
            with suppress(OSError, HTTPException):
                _send(self._filer, "PUT", "/probe", b"1")
                _send(self.endpoint, "GET", "/status")
                return
            time.sleep(0.05)
        log = self.folder / _LOG
        tail = "\n".join(log.read_text(errors="replace").splitlines()[-10:])
        raise AssertionError(f"the S3 server did not start; its log {log} ends with\n{tail}")

    @property
    def _filer(self) -> str:
        return f"http://127.0.0.1:{self.ports['filer.port']}"


@contextmanager
def start_s3(folder: Path) -> Iterator[S3Server]:
    """Start a server with its data in a folder, and stop it at the end."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    config = folder / "identities.json"
    config.touch(mode=0o600)
    config.write_text(json.dumps({"identities": [_identity(*item) for item in ACTIONS.items()]}))
    server = _start(folder, config)
    try:
        with suppress(AssertionError):
            server.wait()
        if not server.process.alive:  # another process has taken one of its ports meanwhile
            server = _start(folder, config)
        server.wait()
        yield server
    finally:
        server.process.stop(0.0)  # it needs 15 seconds to end by itself


def _start(folder: Path, config: Path) -> S3Server:
    ports, mark = _choose_ports(), f"-dir={folder}/"
    command = (
        str(Path(sys.executable).with_name("weed")),
        "-logtostderr=true",
        "server",
        "-s3",
        mark,
        "-ip=127.0.0.1",
        "-ip.bind=127.0.0.1",
        *(f"-{name}={port}" for name, port in ports.items()),
        f"-s3.config={config}",
        "-s3.iam=false",
        "-s3.port.iceberg=0",
        "-s3.port.lance=0",
        "-master.telemetry=false",
        "-master.electionTimeout=1s",
        "-master.volumeSizeLimitMB=64",
        "-volume.max=100",
        "-volume.preStopSeconds=0",
    )
    process = launch(command, mark=mark, log=folder / _LOG, environment={}, detached=False)
    return S3Server(folder, ports, process)


def _identity(name: str, actions: Sequence[str]) -> dict[str, object]:
    credentials = [{"accessKey": name, "secretKey": f"{name}-secret"}]
    return {"name": name, "credentials": credentials, "actions": list(actions)}


def _choose_ports() -> dict[str, int]:
    """Return a free port for each name."""
    with ExitStack() as stack:
        taken = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in _NAMES]
        return dict(zip(_NAMES, (reserved.getsockname()[1] for reserved in taken), strict=True))


def _send(
    address: str, method: str, path: str, body: bytes | None = None, accepted: int = 0
) -> None:
    """Send a request. Raises OSError if it does not succeed, except with an accepted status."""
    connection = HTTPConnection(address.removeprefix("http://"), timeout=60)
    try:
        connection.request(method, path, body)
        status = connection.getresponse().status
    finally:
        connection.close()
    if status >= HTTPStatus.BAD_REQUEST and status != accepted:
        raise OSError(f"{method} {path}: {status}")
