"""The sandbox of `quota-ops sandbox`: brokers in the background, with the name `demo`."""

import base64
import dataclasses
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from secrets import token_urlsafe
from shutil import rmtree

from msgspec import Struct
from msgspec.structs import replace
from platformdirs import user_state_path

from quota_ops.connections import connections_folder
from quota_ops.jvm.java import find_java
from quota_ops.jvm.pinned_jars import Progress, lock_file
from quota_ops.kafka.connection import SANDBOX
from quota_ops.kafka.users import create_users
from quota_ops.lab.kafka.broker import RunningBroker, start_broker
from quota_ops.lab.kafka.config import PLAIN, BrokerConfig
from quota_ops.lab.kafka.jars import DEFAULT_VERSION
from quota_ops.lab.kafka.node import RunningNode, read_node, stop_nodes
from quota_ops.model.errors import ClusterTrouble, InvalidInput
from quota_ops.model.text import counted

_VARIABLE = "QUOTA_OPS_STORE_VARIABLE"
"""The variable for keytool: every user of a machine can read the arguments of a process."""
_DAYS = "365"


class Certificates(Struct, frozen=True, kw_only=True):
    """A key store with the brokers' key and certificate, and the authority as a PEM file."""

    key_store: Path
    password: str
    authority: Path


def create_certificates(folder: Path) -> Certificates:
    """Create an authority and a certificate for 127.0.0.1 that it signed; older ones are replaced.

    Only this user can read the folder. Raises MissingTool without Java; ClusterTrouble with the
    output of keytool if it fails.
    """
    rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True, mode=0o700)
    made = Certificates(
        key_store=folder / "broker.p12", password=token_urlsafe(12), authority=folder / "ca.pem"
    )
    signs = ("-ext", "bc:critical=ca:true", "-ext", "ku:critical=keyCertSign,cRLSign")
    server = ("-signer", "ca", "-ext", "san=ip:127.0.0.1,dns:localhost", "-ext", "eku=serverAuth")
    _create_key(made, "ca", "CN=quota-ops sandbox authority", signs)
    _create_key(made, "broker", "CN=quota-ops sandbox broker", server)
    _run_keytool(made, "-exportcert", "-rfc", "-alias", "ca", "-file", str(made.authority))
    _run_keytool(made, "-delete", "-alias", "ca")
    return made


def _create_key(made: Certificates, alias: str, name: str, extensions: tuple[str, ...]) -> None:
    curve = ("-keyalg", "EC", "-groupname", "secp256r1")
    words = ("-alias", alias, "-dname", name, *curve, "-validity", _DAYS, *extensions)
    _run_keytool(made, "-genkeypair", *words)


def _run_keytool(made: Certificates, action: str, *arguments: str) -> None:
    keytool = Path(find_java()).resolve().with_name("keytool")
    store = ("-storetype", "PKCS12", "-keystore", str(made.key_store))
    ran = subprocess.run(
        [str(keytool), action, *arguments, *store, "-storepass:env", _VARIABLE],
        env={**os.environ, _VARIABLE: made.password},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if ran.returncode != 0:
        raise ClusterTrouble(f"keytool could not create certificates:\n{ran.stdout}")


DEMO_CLUSTER_ID = "MkU3OEVBNTcwNTJENDM2Qg"
_PLAINTEXT = "security.protocol=PLAINTEXT\n"
AUTHENTICATIONS = {"scram": "SASL_PLAINTEXT", "scram-tls": "SASL_SSL"}
"""How clients can authenticate, and the security protocol of each; all with Kafka's authorizer."""
_WRITER, _CLIENT = "svc-quota", "alice"
"""The users of a sandbox with authentication: who alters quotas, and who uses topics."""
_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"
RESTART = "Run: quota-ops sandbox stop && quota-ops sandbox start"
_FIRST_LINE = "# Written by quota-ops sandbox start; quota-ops sandbox stop removes it.\n"


class SandboxStatus(Struct, frozen=True, kw_only=True):
    """The sandbox: its folder, its connection file, and its nodes (none before the first start).

    `started` is whether this call started it.
    """

    home: Path
    connection: Path
    nodes: tuple[RunningNode, ...]
    started: bool = False

    @property
    def node(self) -> RunningNode | None:
        """The first node."""
        return self.nodes[0] if self.nodes else None

    @property
    def running(self) -> bool:
        """Whether the process of a broker is alive."""
        return any(node.alive for node in self.nodes)

    @property
    def dead(self) -> tuple[int, ...]:
        """The ids of the nodes whose process has ended, while another is alive."""
        return tuple(node.id for node in self.nodes if not node.alive) if self.running else ()

    @property
    def last_start(self) -> float:
        """When a node was last started, in seconds since 1970; 0 before the first start."""
        return max((node.started for node in self.nodes), default=0.0)

    @property
    def auth(self) -> str | None:
        """How clients authenticate, a key of AUTHENTICATIONS; None without authentication."""
        ports = self.node.ports if self.node else {}
        return next((auth for auth, name in AUTHENTICATIONS.items() if name in ports), None)

    @property
    def bootstrap(self) -> str:
        """The bootstrap.servers for clients."""
        return ",".join(node.address(_choose_listener(self.auth)) for node in self.nodes)

    @property
    def client(self) -> Path | None:
        """The configuration of a client that uses topics; None if there is no authentication."""
        return self.nodes[0].folder.parent / f"{_CLIENT}.properties" if self.auth else None


def find_sandbox() -> SandboxStatus:
    """Return the status of the sandbox that was started last, without changing it."""
    chosen = os.environ.get("QUOTA_OPS_SANDBOX")
    home = (Path(chosen) if chosen else user_state_path("quota-ops") / "sandbox").resolve()
    found = [_read_sandbox(home, folder) for folder in (home, *home.glob("brokers-*"))]
    return max(found, key=lambda status: (status.running, status.last_start))


def _read_sandbox(home: Path, folder: Path) -> SandboxStatus:
    """Return the sandbox in a folder: a number of brokers and an authentication have their own."""
    nodes = [node for path in sorted(folder.glob("node-*")) if (node := read_node(path))]
    return SandboxStatus(home=home, connection=find_connection_file(), nodes=tuple(nodes))


def start_sandbox(
    *,
    version: str | None = None,
    brokers: int | None = None,
    auth: str | None = None,
    progress: Progress = lambda _done, _all: None,
) -> SandboxStatus:
    """Start the sandbox in the background, unless it is running, and write its connection file.

    The default `version` is the running one, or DEFAULT_VERSION; the default of `brokers` and
    `auth` likewise, or one broker without authentication. Each combination is a cluster of its own,
    whose data and id persist across starts. With `auth`, the connection is of a user who may only
    describe and alter quotas; passwords and certificates are new at each start.
    Raises InvalidInput when another sandbox is running, no sandbox wrote the connection file, or a
    folder cannot be written; MissingTool without Java or jars; ClusterTrouble when Kafka does not
    start, or one of several brokers has ended.
    """
    with _lock_sandbox() as status:
        if status.node and status.running:
            _refuse_other(status, version, brokers, auth)
            if status.dead:
                raise ClusterTrouble(describe_dead(status), RESTART)
            return status
        check_replaceable(status.connection)
        status.connection.parent.mkdir(parents=True, exist_ok=True)
        version, brokers = version or DEFAULT_VERSION, brokers or 1
        config = BrokerConfig(
            cluster_id=find_cluster_id(version, brokers, auth), version=version, nodes=brokers
        )
        name = f"brokers-{config.nodes}" + (f"-{auth}" if auth else "")
        home = status.home if (config.nodes, auth) == (1, None) else status.home / name
        certificates = create_certificates(home / "certificates") if auth == "scram-tls" else None
        if auth:
            config = _secure(config, auth, certificates)
        broker = start_broker(config, home, detached=True, progress=progress)
        try:
            logins = _create_users(broker, home, auth, certificates) if auth else {}
            write_connection(
                status.connection,
                broker.bootstrap(_choose_listener(auth)),
                logins.get(_WRITER, _PLAINTEXT),
            )
        except BaseException:
            broker.stop()
            raise
        return replace(status, nodes=broker.nodes, started=True)


def find_cluster_id(version: str, brokers: int, auth: str | None) -> str:
    """Return the cluster id of a sandbox; by it, each kind of sandbox has its own ledger."""
    if (version, brokers, auth) == (DEFAULT_VERSION, 1, None):
        return DEMO_CLUSTER_ID
    digest = sha256(f"{version} {brokers} {auth}".encode()).hexdigest()[:16]
    return base64.b64encode(digest.encode()).decode().rstrip("=")


def _refuse_other(
    status: SandboxStatus, version: str | None, brokers: int | None, auth: str | None
) -> None:
    """Raise InvalidInput if a running sandbox is not the one that was requested."""
    running = status.node.version if status.node else ""
    wanted = {
        f"--version {version}": version in (None, running),
        f"--brokers {brokers}": brokers in (None, len(status.nodes)),
        f"--auth {auth}": auth in (None, status.auth),
    }
    if not all(wanted.values()):
        shape = counted(len(status.nodes), "broker") if len(status.nodes) > 1 else ""
        words = " with ".join(filter(None, (f"Kafka {running}", shape, status.auth)))
        others = " ".join(option for option, is_same in wanted.items() if not is_same)
        raise InvalidInput(f"The sandbox already runs {words}.", f"{RESTART} {others}")


def describe_dead(status: SandboxStatus) -> str:
    """Return which brokers of a running sandbox have ended."""
    names = ", ".join(map(str, status.dead))
    of = f"{len(status.dead)} of {counted(len(status.nodes), 'broker')}"
    return f"{of} of the sandbox ended: {names}"


def _choose_listener(auth: str | None) -> str:
    return AUTHENTICATIONS[auth] if auth else PLAIN


def _secure(config: BrokerConfig, auth: str, certificates: Certificates | None) -> BrokerConfig:
    """Return the configuration with a listener that requires authentication."""
    listener = AUTHENTICATIONS[auth]
    properties = {
        "sasl.enabled.mechanisms": "SCRAM-SHA-512",
        "scram-sha-512.sasl.jaas.config": f"{_MODULE} required;",
    }
    if certificates:
        properties |= {
            "ssl.keystore.type": "PKCS12",
            "ssl.keystore.location": str(certificates.key_store),
            "ssl.keystore.password": certificates.password,
        }
    prefix = f"listener.name.{listener.lower()}"
    return dataclasses.replace(
        config,
        listeners={listener: listener},
        super_users=("admin",),
        properties={f"{prefix}.{name}": value for name, value in properties.items()},
    )


def _create_users(
    broker: RunningBroker, home: Path, auth: str, certificates: Certificates | None
) -> dict[str, str]:
    """Create the users, write the configuration of the client, and return their settings."""
    passwords = {user: token_urlsafe(12) for user in ("admin", _WRITER, _CLIENT)}
    create_users(broker.bootstrap(), passwords, writers=[_WRITER], clients=[_CLIENT])
    trusted = (
        f"ssl.truststore.type=PEM\nssl.truststore.location={certificates.authority}\n"
        if certificates
        else ""
    )
    listener = AUTHENTICATIONS[auth]
    logins = {
        user: (
            f"security.protocol={listener}\n{trusted}sasl.mechanism=SCRAM-SHA-512\n"
            f'sasl.jaas.config={_MODULE} required username="{user}" password="{password}";\n'
        )
        for user, password in passwords.items()
    }
    for user in ("admin", _CLIENT):
        write_connection(home / f"{user}.properties", broker.bootstrap(listener), logins[user])
    return logins


def stop_sandbox() -> bool:
    """Stop the sandbox and remove its connection file; return whether it was running."""
    with _lock_sandbox() as status:
        running = status.running
        stop_nodes(status.nodes)
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


def find_connection_file() -> Path:
    """Return the file that `find_connection` reads for the sandbox."""
    return connections_folder() / f"{SANDBOX}.properties"


def check_replaceable(file: Path) -> None:
    """Raise InvalidInput when the file exists and no sandbox wrote it."""
    if file.exists() and not _is_sandbox_file(file):
        raise InvalidInput(
            f"{file} is your own connection; the sandbox does not replace it.",
            "Rename it, or set QUOTA_OPS_CONNECTIONS to another folder.",
        )


def write_connection(file: Path, bootstrap: str, settings: str = _PLAINTEXT) -> None:
    """Write a connection to a sandbox, which only this user can read.

    Raises InvalidInput if the file is the user's own.
    """
    check_replaceable(file)
    file.parent.mkdir(parents=True, exist_ok=True)
    written = file.with_name(f".{file.name}.{os.getpid()}")
    written.touch(mode=0o600)
    written.write_text(f"{_FIRST_LINE}bootstrap.servers={bootstrap}\n{settings}")
    written.replace(file)


def remove_connection(file: Path) -> None:
    """Remove a connection file if a sandbox wrote it."""
    if _is_sandbox_file(file):
        file.unlink()


def _is_sandbox_file(file: Path) -> bool:
    return file.is_file() and file.read_bytes().startswith(_FIRST_LINE.encode())
