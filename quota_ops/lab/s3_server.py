"""A real S3 server on this machine, SeaweedFS: on loopback only, for trials and tests."""

import json
import shutil
import socket
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException
from pathlib import Path

from quota_ops.lab.kafka.process import OwnProcess, launch
from quota_ops.lab.kafka.sandbox import find_sandbox
from quota_ops.model.errors import ClusterTrouble, MissingTool
from quota_ops.store.places.run_store import ENVIRONMENT

_BUCKET, _IDENTITY = "runs", "sandbox"

_SERVICES = ("master", "volume", "filer", "s3")
_NAMES = tuple(f"{service}.port{kind}" for service in _SERVICES for kind in ("", ".grpc"))
_PATIENCE = 60.0
_STATE = "server.json"
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

    def environment(self, identity: str) -> dict[str, str]:
        """Return the variables that a client of the server needs."""
        return {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ALLOW_HTTP": "true",
            "AWS_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": identity,
            "AWS_SECRET_ACCESS_KEY": f"{identity}-secret",
        }

    def create_bucket(self, name: str) -> None:
        """Create a bucket, unless it exists; the server has room for about ten."""
        _send(self._filer, "POST", f"/buckets/{name}/?op=mkdir", accepted=HTTPStatus.CONFLICT)

    def stop(self, grace: float = 2.0) -> None:
        """Stop the server, and kill it after `grace` seconds. What it has stored is kept.

        It needs 15 seconds to end by itself.
        """
        self.process.stop(grace)

    def wait(self) -> None:
        """Wait until the server stores an object.

        Raises ClusterTrouble if it ends or takes too long.
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
        raise ClusterTrouble(f"the S3 server did not start; its log {log} ends with\n{tail}")

    @property
    def _filer(self) -> str:
        return f"http://127.0.0.1:{self.ports['filer.port']}"


def start_s3(
    folder: Path, actions: Mapping[str, Sequence[str]], *, detached: bool = False
) -> S3Server:
    """Start a server with its data in a folder, and these actions of each identity.

    It keeps its ports across starts, unless they are taken. Requests without a signature are those
    of the identity `anonymous`. The server ends with this process, unless it is `detached`. Raises
    MissingTool if SeaweedFS is not installed, ClusterTrouble if it does not start.
    """
    beside = Path(sys.executable).with_name("weed")
    weed = str(beside) if beside.exists() else shutil.which("weed")
    if weed is None:
        raise MissingTool(
            "the program weed, which is the sandbox's S3 server, is not installed",
            "Install quota-ops with the extra [sandbox-s3].",
        )
    earlier = read_s3(folder)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    config = folder / "identities.json"
    config.touch(mode=0o600)
    config.write_text(json.dumps({"identities": [_identity(*item) for item in actions.items()]}))
    ports = _choose_ports(list(earlier.ports.values()) if earlier else [0] * len(_NAMES))
    mark = _build_mark(folder)
    command = (
        weed,
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
    process = launch(command, mark=mark, log=folder / _LOG, environment={}, detached=detached)
    server = S3Server(folder, ports, process)
    (folder / _STATE).write_text(json.dumps({"pid": process.pid, "ports": ports}))
    try:
        server.wait()
    except BaseException:
        server.stop()
        raise
    return server


def read_s3(folder: Path) -> S3Server | None:
    """Return the server that was last started in a folder, running or not."""
    try:
        state = json.loads((folder / _STATE).read_text())
        process = OwnProcess(pid=int(state["pid"]), mark=_build_mark(folder))
        return S3Server(folder, {name: int(state["ports"][name]) for name in _NAMES}, process)
    except (OSError, ValueError, TypeError, KeyError):  # no file, or an incomplete one
        return None


def _build_mark(folder: Path) -> str:
    return f"-dir={folder}/"


def _identity(name: str, actions: Sequence[str]) -> dict[str, object]:
    credentials = [{"accessKey": name, "secretKey": f"{name}-secret"}]
    return {"name": name, "credentials": credentials, "actions": list(actions)}


def _choose_ports(wanted: Sequence[int]) -> dict[str, int]:
    """Return a port for each name: the wanted one, or another if it is taken."""
    with ExitStack() as stack:
        taken = [stack.enter_context(_bind(port)) for port in wanted]
        return dict(zip(_NAMES, (reserved.getsockname()[1] for reserved in taken), strict=True))


def _bind(port: int) -> socket.socket:
    try:
        return socket.create_server(("127.0.0.1", port))
    except OSError:
        return socket.create_server(("127.0.0.1", 0))


def _send(
    address: str, method: str, path: str, body: bytes | None = None, accepted: int = 0
) -> None:
    """Send a request. Raises OSError if it does not succeed, except with an accepted status."""
    connection = HTTPConnection(address.removeprefix("http://"), timeout=5)
    try:
        connection.request(method, path, body)
        status = connection.getresponse().status
    finally:
        connection.close()
    if status >= HTTPStatus.BAD_REQUEST and status != accepted:
        raise OSError(f"{method} {path}: {status}")


def start_s3_sandbox() -> S3Server:
    """Start the server in the background, unless it is running; errors as `start_s3`."""
    running = find_s3_sandbox()
    if running is not None:
        return running
    actions = {_IDENTITY: ["Admin", "Read", "Write", "List"]}
    server = start_s3(_folder(), actions, detached=True)
    server.create_bucket(_BUCKET)
    return server


def find_s3_sandbox() -> S3Server | None:
    """Return the running server; None if it does not run."""
    found = read_s3(_folder())
    return found if found is not None and found.process.alive else None


def stop_s3_sandbox() -> bool:
    """Stop the server, which keeps its data; return whether it was running."""
    found = find_s3_sandbox()
    if found is not None:
        found.stop()
    return found is not None


def list_variables(server: S3Server) -> dict[str, str]:
    """Return the variables with which every command uses a run store on the server."""
    return {ENVIRONMENT: f"s3://{_BUCKET}/quota-ops", **server.environment(_IDENTITY)}


def _folder() -> Path:
    return find_sandbox().home / "s3"
