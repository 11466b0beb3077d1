"""Connections to a real broker: every valid way works, every failure is named in time."""

import gc
import socket
import ssl
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from quota_ops.kafka.client.broker_client import build_client
from quota_ops.kafka.client.description import Broker, ClusterDescription
from quota_ops.kafka.client.tls import build_tls_context
from quota_ops.kafka.cluster import Cluster, open_cluster
from quota_ops.kafka.connection import Connection
from quota_ops.kafka.preflight import preflight
from quota_ops.model.errors import (
    ClusterTrouble,
    InvalidInput,
    LoginFailed,
    QuotaOpsError,
    WrongCluster,
)
from quota_ops.model.plans.policy import VerifyPolicy
from tests.broker.conftest import PASSWORD, USER, Listeners
from tests.broker.wire import Wire
from tests.certificates import KEY_PASSWORD
from tests.clock import PROMPTLY
from tests.yaml_cases import load_yaml

FAILURES = load_yaml(
    (Path(__file__).parents[1] / "cases/connection/failures.yaml").read_text("utf-8")
)
LOGIN = {"sasl.username": USER, "sasl.password": PASSWORD}
TLS = {"ssl.ca.location": "ca.pem"}
CERTIFICATE = {
    "ssl.certificate.location": "client.pem",
    "ssl.key.location": "client.key",
    "ssl.key.password": KEY_PASSWORD,
}
WAYS_IN: dict[str, dict[str, str]] = {
    "PLAINTEXT": {},
    "NOBODY_AND_PLAINTEXT": {},
    "SASL": {"security.protocol": "sasl_plaintext", "sasl.mechanism": "PLAIN", **LOGIN},
    "SASL by SCRAM": {
        "security.protocol": "sasl_plaintext",
        "sasl.mechanism": "SCRAM-SHA-256",
        **LOGIN,
    },
    "TLS": {"security.protocol": "ssl", **TLS},
    "TLS by a list of the revoked": {
        "security.protocol": "ssl",
        **TLS,
        "ssl.crl.location": "none-revoked.pem",
    },
    "TLS_BY_NAME": {
        "security.protocol": "ssl",
        **TLS,
        "ssl.endpoint.identification.algorithm": "none",
    },
    "SASL_TLS": {
        "security.protocol": "sasl_ssl",
        "sasl.mechanism": "SCRAM-SHA-512",
        **LOGIN,
        **TLS,
    },
    "MUTUAL_TLS": {"security.protocol": "ssl", **TLS, **CERTIFICATE},
    "MUTUAL_TLS by texts": {
        "security.protocol": "ssl",
        "ssl.ca.pem": "${file:ca.pem}",
        "ssl.certificate.pem": "${file:client.pem}",
        "ssl.key.pem": "${file:client.key}",
        "ssl.key.password": KEY_PASSWORD,
    },
}


def connect(listeners: Listeners, address: str, settings: Mapping[str, str]) -> Connection:
    """Read a connection file, demo.properties, with an address and settings."""
    lines = {"bootstrap.servers": address, **settings}
    text = "\n".join(f"{name}={value}" for name, value in lines.items())
    return Connection.parse(
        text.replace("${FOLDER}", str(listeners.folder)),
        name="demo",
        source="demo.properties",
        folder=listeners.folder,
    )


@pytest.mark.parametrize("way", WAYS_IN)
def test_every_way_in(way: str, listeners: Listeners, capfd: pytest.CaptureFixture[str]) -> None:
    """Both clients connect to each kind of listener with its settings, without a message."""
    name = way.partition(" ")[0]
    connection = connect(listeners, listeners.addresses[name], WAYS_IN[way])
    with open_cluster(connection, cluster_id=listeners.cluster_id) as cluster:
        assert cluster.describe() == ()
        assert cluster.cluster_id == listeners.cluster_id
        advertised = name.removesuffix("_BY_NAME").removeprefix("NOBODY_AND_")
        assert [(broker.id, broker.address) for broker in cluster.brokers] == [
            (1, listeners.addresses[advertised])
        ]
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("case", FAILURES, ids=lambda case: case["case"])
def test_every_failure_is_named(
    case: Any,
    listeners: Listeners,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Each failure has its class and its text within five seconds, and nothing else is printed."""
    monkeypatch.setenv("WRONG_PASSWORD", "wr0ng")
    address = listeners.addresses[case["listener"]]
    connection = connect(listeners, address, case.get("settings", {}))
    started = time.monotonic()
    with pytest.raises(QuotaOpsError) as error, open_cluster(connection, cluster_id=None):
        pass
    assert time.monotonic() - started < PROMPTLY
    words = case["message"].replace("${ADDRESS}", address)
    words = words.replace("${SASL}", listeners.addresses["SASL"])
    assert str(error.value) == words.replace("${FOLDER}", str(listeners.folder))
    assert type(error.value).__name__ == case["error"]
    assert "wr0ng" not in str(error.value)
    assert capfd.readouterr() == ("", "")
    assert caplog.records == []


def test_the_first_address_that_answers(listeners: Listeners) -> None:
    """If only the bootstrap address is used, one that nobody listens at is skipped."""
    address = listeners.addresses["NOBODY_AND_SASL"]
    connection = connect(listeners, address, WAYS_IN["SASL"])
    with open_cluster(connection, cluster_id=None, verify=VerifyPolicy.BOOTSTRAP) as cluster:
        assert cluster.describe() == ()

    assert [endpoint.address for endpoint in cluster.endpoints] == [listeners.addresses["SASL"]]


def test_a_bootstrap_address_that_refuses_the_login(listeners: Listeners) -> None:
    """The error of the bootstrap address alone has the same text."""
    address, settings = listeners.addresses["SASL"], {**WAYS_IN["SASL"], "sasl.password": "wr0ng"}
    connection = connect(listeners, address, settings)
    with pytest.raises(LoginFailed) as error:
        preflight(connection, None, VerifyPolicy.BOOTSTRAP)

    assert error.value.message == (
        f"connection demo: the broker at {address} rejected the credentials of user '{USER}' "
        "(SASL PLAIN: Authentication failed: Invalid username or password)."
    )


def test_a_slow_server_with_a_revoked_certificate(listeners: Listeners) -> None:
    """The reason is found in the rest of the five seconds, not only of a server that is quick."""
    wire = Wire(listeners.addresses["TLS"], delay=0.3)
    trust = {"security.protocol": "ssl", **TLS, "ssl.crl.location": "broker-revoked.pem"}
    with pytest.raises(LoginFailed) as error:
        preflight(connect(listeners, f"127.0.0.1:{wire.port}", trust), None)
    wire.remove()

    assert error.value.message.endswith(" is not trusted: certificate revoked.")


@pytest.mark.parametrize(
    ("name", "polls"),
    [("NOBODY", 5), ("PLAINTEXT", 0), ("PLAINTEXT", 3), ("SILENT_TLS", 5), ("DISTRUSTED_TLS", 20)],
)
def test_a_closed_client_leaves_no_socket(name: str, polls: int, listeners: Listeners) -> None:
    """However far its connection got, and whatever it has not sent yet, all sockets are closed.

    After three polls, the first request of a connection is not sent.
    """
    name, _, tls = name.partition("_")
    name = name.replace("DISTRUSTED", "TLS")
    trust = {"security.protocol": "ssl", "ssl.ca.location": "other-ca.pem"} if tls else {}
    host, _, port = listeners.addresses[name].partition(":")
    connection = connect(listeners, listeners.addresses[name], trust)
    before = open_sockets()
    client = build_client(connection, [Broker(1, host, int(port))], 5.0)
    client.maybe_connect("bootstrap-0")
    for _ in range(polls):
        client.poll(timeout_ms=20)
    client.close()

    assert open_sockets() == before


def test_a_handshake_that_fails_at_once_leaves_no_socket(listeners: Listeners) -> None:
    """A socket that nobody waited for is closed too: the server may answer within one call."""
    host, _, port = listeners.addresses["TLS"].partition(":")
    context = build_tls_context({"ssl.ca.location": str(listeners.folder / "other-ca.pem")})
    plain = socket.create_connection((host, int(port)))
    tls = context.wrap_socket(plain, server_hostname=host, do_handshake_on_connect=False)
    with pytest.raises(ssl.SSLCertVerificationError):
        tls.do_handshake()

    assert tls.fileno() == -1


def open_sockets() -> set[int]:
    """Return the descriptors of this process's open sockets."""
    # Not isinstance, which loads what a lazy proxy of another library stands for.
    found = (one for one in gc.get_objects() if issubclass(type(one), socket.socket))
    return {one.fileno() for one in found} - {-1}


def test_another_cluster_is_recognised(listeners: Listeners) -> None:
    """If another cluster responds, both ids are named before any other request."""
    address = listeners.addresses["PLAINTEXT"]
    with pytest.raises(WrongCluster) as error:
        preflight(connect(listeners, address, {}), "MkU3OEVBNTcwNTJENDM2Qg")
    assert str(error.value) == (
        "connection demo: expected the cluster MkU3OEVBNTcwNTJENDM2Qg, but "
        f"{address} belongs to {listeners.cluster_id}.\n"
        "  Check bootstrap.servers (demo.properties:1) and cluster_id in cluster.yaml. "
        "Nothing was read or changed."
    )


def test_a_client_that_starts_slowly(listeners: Listeners, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client whose start takes longer than the deadline of the preflight queries the cluster."""
    monkeypatch.setattr("quota_ops.kafka.preflight._DEADLINE", 0.0)

    found = preflight(connect(listeners, listeners.addresses["PLAINTEXT"], {}), None)

    assert found.cluster_id == listeners.cluster_id


def at(listeners: Listeners, name: str, settings: Mapping[str, str]) -> Cluster:
    """Return a cluster whose broker 1 is at an address of the listeners."""
    host, _, port = listeners.addresses[name].partition(":")
    description = ClusterDescription(listeners.cluster_id, (Broker(1, host, int(port)),))
    connection = connect(listeners, listeners.addresses[name], settings)
    return Cluster(connection, description, timeout=5.0)


def test_a_password_that_is_lost_after_the_preflight(listeners: Listeners) -> None:
    """A key that was replaced meanwhile is an error of the file; no password prompt appears."""
    settings = WAYS_IN["MUTUAL_TLS"].copy()
    del settings["ssl.key.password"]
    with pytest.raises(
        InvalidInput, match=r"^demo\.properties: its certificates can no longer be used"
    ):
        at(listeners, "MUTUAL_TLS", settings).describe()


def test_trust_that_is_lost_after_the_preflight(listeners: Listeners) -> None:
    """A certificate that was replaced meanwhile is named, and not retried."""
    cluster = at(listeners, "TLS", {"security.protocol": "ssl", "ssl.ca.location": "other-ca.pem"})
    started = time.monotonic()
    with pytest.raises(LoginFailed) as error:
        cluster.describe()
    assert time.monotonic() - started < 4.5  # retries would take five
    assert error.value.message.startswith(
        f"connection demo: broker 1 at {listeners.addresses['TLS']} cannot be reached: "
        "Handshake failed: [SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: "
    )


def test_a_server_without_these_calls(listeners: Listeners) -> None:
    """A call that a server does not offer is named, and not retried."""
    cluster = at(listeners, "CONTROLLER", {})
    with pytest.raises(ClusterTrouble) as error:
        cluster.describe()
    cluster.close()
    assert str(error.value) == (
        f"connection demo: broker 1 at {listeners.addresses['CONTROLLER']} does not support "
        "Metadata.\n"
        "  Client quotas need Apache Kafka 2.6 or later, or a service with these calls."
    )
