"""A broker with a listener of every kind, certificates made for it, and ports without a broker."""

import socket
import socketserver
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Self

import pytest
from kafka.admin import KafkaAdminClient, UserScramCredentialDeletion, UserScramCredentialUpsertion

from quota_ops.kafka.cluster import Cluster, open_cluster
from quota_ops.kafka.connection import Connection
from quota_ops.lab.kafka.broker import RunningBroker, start_broker
from quota_ops.lab.kafka.config import BrokerConfig
from quota_ops.lab.kafka.sandbox import stop_sandbox
from quota_ops.sql import text
from tests.broker.token_endpoint import AUDIENCE, TokenEndpoint
from tests.broker.working_clients import fill
from tests.broker_config import SASL, generate_cluster_id, password_of, plain_logins
from tests.certificates import make_certificates
from tests.lab import Lab, open_lab
from tests.places import list_undeclared_files

USER, PASSWORD = "svc-quota", "s3cr3t"
LISTENERS = {
    "SASL": "SASL_PLAINTEXT",
    "TLS": "SSL",
    "SASL_TLS": "SASL_SSL",
    "MUTUAL_TLS": "SSL",
    "TOKENS": "SASL_SSL",
}
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required;"


@dataclass(frozen=True)
class Listeners:
    """Addresses by the kind of the listener, and the folder of the certificates."""

    cluster_id: str
    folder: Path
    addresses: Mapping[str, str]
    tokens: TokenEndpoint


@pytest.fixture(scope="session")
def listeners(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Listeners]:
    """Start one broker behind a listener of every kind, and list addresses without a broker."""
    folder = tmp_path_factory.mktemp("certificates")
    make_certificates(folder, USER)
    config = BrokerConfig(
        cluster_id=generate_cluster_id(),
        listeners=LISTENERS,
        properties={
            **plain_logins({USER: PASSWORD}, LISTENERS),
            "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
            "listener.name.sasl.sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
            "listener.name.sasl.scram-sha-256.sasl.jaas.config": SCRAM,
            "listener.name.sasl_tls.sasl.enabled.mechanisms": "SCRAM-SHA-512",
            "listener.name.sasl_tls.scram-sha-512.sasl.jaas.config": SCRAM,
            "listener.name.mutual_tls.ssl.client.auth": "required",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(folder / "broker.pem"),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(folder / "ca.pem"),
            **by_tokens((folder / "jwks.json").as_uri()),
        },
    )
    with (
        TokenEndpoint(folder) as tokens,
        broker_that_reads(folder / "jwks.json", tokens.jwks, config, tmp_path_factory) as running,
        Decoys() as decoys,
    ):
        add_scram_user(running.bootstrap())
        addresses = {name: running.nodes[0].address(name) for name in config.protocols}
        addresses["TLS_BY_NAME"] = addresses["TLS"].replace("127.0.0.1", "localhost")
        addresses |= decoys.addresses
        addresses["NOBODY_AND_SASL"] = f"{addresses['NOBODY']},{addresses['SASL']}"
        addresses["NOBODY_AND_PLAINTEXT"] = f"{addresses['NOBODY']},{addresses['PLAINTEXT']}"
        yield Listeners(config.cluster_id, folder, addresses, tokens)


def by_tokens(jwks: str) -> dict[str, str]:
    """Return the properties by which a broker verifies tokens with the key in a file."""
    package = "org.apache.kafka.common.security.oauthbearer"
    listener = "listener.name.tokens"
    return {
        f"{listener}.sasl.enabled.mechanisms": "OAUTHBEARER",
        f"{listener}.oauthbearer.sasl.jaas.config": f"{package}.OAuthBearerLoginModule required;",
        f"{listener}.oauthbearer.sasl.server.callback.handler.class": (
            f"{package}.OAuthBearerValidatorCallbackHandler"
        ),
        f"{listener}.oauthbearer.connections.max.reauth.ms": "1000",
        f"{listener}.sasl.oauthbearer.jwks.endpoint.url": jwks,
        f"{listener}.sasl.oauthbearer.expected.audience": AUDIENCE,
    }


@contextmanager
def broker_that_reads(
    file: Path, text: str, config: BrokerConfig, folders: pytest.TempPathFactory
) -> Iterator[RunningBroker]:
    """Return the configuration of a broker that may read its keys from a file."""
    file.write_text(text)
    allowed = f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={file.as_uri()}"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JDK_JAVA_OPTIONS", allowed)
        running = start_broker(config, folders.mktemp("listeners"))
    with running:
        yield running


@pytest.fixture(scope="session")
def quick(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    """Start a broker with logins that forgets a client's usage within two seconds."""
    names = ("alice", "bob", "carol", "dave", "erin", "frank", "grace", "heidi")
    config = BrokerConfig(
        cluster_id=generate_cluster_id(),
        listeners=SASL,
        properties={
            **plain_logins({name: password_of(name) for name in names}),
            "quota.window.num": "2",
            "quota.window.size.seconds": "1",
            "controller.quota.window.num": "2",
        },
    )
    with start_broker(config, tmp_path_factory.mktemp("quick-broker")) as running:
        fill(running.bootstrap())
        yield running


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run every test of a lab with a local run store and, in `make matrix`, with a bucket.

    The marker `local_store` is for tests of local files, `each_store` for tests that `make test`
    runs with both.
    """
    marks = {mark.name for mark in metafunc.definition.iter_markers()}
    if "lab" in metafunc.fixturenames and "local_store" not in marks:
        matrix = () if "each_store" in marks else pytest.mark.matrix
        stores = ["folder", pytest.param("bucket", marks=matrix)]
        metafunc.parametrize("lab", stores, indirect=True)


@pytest.fixture
def lab(broker: RunningBroker, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Lab]:
    """Open a lab on the shared broker, and clear the broker after the test.

    Every file that the runs of the test left must be declared, or prune would never remove it.
    """
    is_local = getattr(request, "param", "folder") == "folder"
    address = None if is_local else request.getfixturevalue("address")
    with open_lab(broker, tmp_path) as opened:
        lab = replace(opened, address=address)
        yield lab
        assert list_undeclared_files(lab.store) == []


@pytest.fixture
def demo(
    broker: RunningBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Cluster]:
    """Return the shared broker, which the command line in this folder finds by the name demo."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("QUOTA_OPS_RUN_STORE", str(tmp_path / "store"))
    monkeypatch.setenv("QUOTA_OPS_CONNECTION_DEMO", str(tmp_path / "demo.properties"))
    servers = f"bootstrap.servers={broker.bootstrap()}\n"
    (tmp_path / "demo.properties").write_text(servers)
    connection = Connection.parse(servers, name="demo", source="a test")
    with open_cluster(connection, cluster_id=None) as cluster:
        yield cluster


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a batch contain two keys, so that a few rows make several batches."""
    monkeypatch.setattr(text, "batches_text", partial(text.batches_text, max_keys=2))


class WebServer(socketserver.BaseRequestHandler):
    """Respond as a web server does to a request that it does not understand."""

    def handle(self) -> None:
        """Write an error and hang up."""
        self.request.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")


class Decoys:
    """Ports of this machine behind which there is no broker."""

    def __init__(self) -> None:
        self._silent = socket.create_server(("127.0.0.1", 0))
        self._closed = socket.socket()  # not listening, but no other process gets the port
        self._closed.bind(("127.0.0.1", 0))
        self._web = socketserver.TCPServer(("127.0.0.1", 0), WebServer)

    @property
    def addresses(self) -> dict[str, str]:
        """Return the addresses: SILENT accepts connections, NOBODY does not, HTTP speaks HTTP."""
        return {
            "SILENT": f"127.0.0.1:{self._silent.getsockname()[1]}",
            "NOBODY": f"127.0.0.1:{self._closed.getsockname()[1]}",
            "HTTP": f"127.0.0.1:{self._web.server_address[1]}",
            "NOWHERE": "no-such-host.invalid:9092",
        }

    def __enter__(self) -> Self:
        threading.Thread(target=self._web.serve_forever, kwargs={"poll_interval": 0.05}).start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._web.shutdown()
        self._web.server_close()
        self._silent.close()
        self._closed.close()


def add_scram_user(bootstrap: str, password: str = PASSWORD, user: str = USER) -> None:
    """Give a user SCRAM credentials, which a broker keeps in its metadata."""
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):  # Kafka takes one of a user at a time
        admin.alter_user_scram_credentials(
            [UserScramCredentialUpsertion(user, mechanism, password)]
        )
    admin.close()


def remove_scram_user(bootstrap: str, user: str) -> None:
    """Remove what `add_scram_user` gave a user."""
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
        admin.alter_user_scram_credentials([UserScramCredentialDeletion(user, mechanism)])
    admin.close()


@pytest.fixture
def sandbox_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return the home of a sandbox of this test, stopped at its end."""
    monkeypatch.setenv("QUOTA_OPS_SANDBOX", str(tmp_path / "sandbox"))
    monkeypatch.setenv("QUOTA_OPS_CONNECTIONS", str(tmp_path / "connections"))
    monkeypatch.setenv("QUOTA_OPS_RUN_STORE", str(tmp_path / "store"))
    yield tmp_path / "sandbox"
    stop_sandbox()
