"""Properties files of Kafka's Java clients connect Kafka's own command and quota-ops."""

import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
    pkcs12,
)
from cryptography.x509 import load_pem_x509_certificates

from quota_ops.jvm.java import find_java
from quota_ops.kafka.cluster import open_cluster
from quota_ops.kafka.connection import Connection, find_connection
from quota_ops.model.errors import InvalidInput
from tests.broker.conftest import Listeners, add_scram_user, remove_scram_user
from tests.broker.kafka_configs import run_command
from tests.certificates import KEY_PASSWORD

STORE_PASSWORD = "st0re-k3y"
HARD_PASSWORD = "a \"b\\c;d'=#:!$"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
BY_PASSWORD = rf"""
security.protocol : SASL_SSL
sasl.mechanism = SCRAM-SHA-512
sasl.jaas.config = {SCRAM} required \
    username='svc\\u0020java' password="a \\"b\\\\c;d'=\#:!$"; // not = "this";
ssl.truststore.type=PEM
ssl.truststore.location=ca.pem
ssl.endpoint.identification.algorithm=
""".replace(r"\\u0020", r"\u0020")
BY_FILES = """
security.protocol=SSL
ssl.truststore.type=PEM
ssl.truststore.location=ca.pem
ssl.keystore.type=PEM
ssl.keystore.location=client-store.pem
"""
BY_TEXTS = """
security.protocol=SSL
ssl.truststore.type=PEM
ssl.truststore.certificates=%(ca)s
ssl.keystore.type=PEM
ssl.keystore.certificate.chain=%(certificate)s
ssl.keystore.key=%(key)s
"""


@pytest.fixture(name="folder", scope="module")
def _folder(listeners: Listeners, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Return the certificates, and a user whose password needs escapes.

    The key is not encrypted: Java before 19 does not decrypt the form that OpenSSL writes.
    """
    folder = tmp_path_factory.mktemp("java")
    shutil.copytree(listeners.folder, folder, dirs_exist_ok=True)
    key = unlocked(folder).private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    (folder / "client.key").write_bytes(key)
    (folder / "client-store.pem").write_bytes(key + (folder / "client.pem").read_bytes())
    add_scram_user(listeners.addresses["PLAINTEXT"], HARD_PASSWORD, "svc java")
    yield folder
    remove_scram_user(listeners.addresses["PLAINTEXT"], "svc java")


def unlocked(folder: Path) -> EllipticCurvePrivateKey:
    """Return the client's key."""
    text = (folder / "client.key").read_bytes()
    key = load_pem_private_key(text, KEY_PASSWORD.encode() if b"ENCRYPTED" in text else None)
    assert isinstance(key, EllipticCurvePrivateKey)
    return key


def on_one_line(file: Path) -> str:
    """Return a PEM text as Java's files may contain it."""
    return file.read_text("ascii").replace("\n", "\\n")


def text_of(listeners: Listeners, listener: str, settings: str, folder: Path) -> str:
    """Return the text of a file for a listener."""
    texts = {"ca": "ca.pem", "certificate": "client.pem", "key": "client.key"}
    if "%(" in settings:
        settings %= {name: on_one_line(folder / file) for name, file in texts.items()}
    return f"bootstrap.servers={listeners.addresses[listener]}\n{settings}"


def kafka_configs(folder: Path, listeners: Listeners, listener: str) -> str:
    """Return the output of Kafka's command that describes the users by that file."""
    what = ("--command-config", "client.properties", "--describe", "--entity-type", "clients")
    ran = run_command(listeners.addresses[listener], what, folder)
    return ran.stdout + ran.stderr if ran.returncode else "came in"


@pytest.mark.parametrize(
    ("listener", "settings"),
    [("SASL_TLS", BY_PASSWORD), ("MUTUAL_TLS", BY_FILES), ("MUTUAL_TLS", BY_TEXTS)],
    ids=["password", "files", "texts"],
)
def test_kafkas_command_and_we_read_the_same(
    listener: str, settings: str, listeners: Listeners, folder: Path
) -> None:
    """One file connects Kafka's command, confluent-kafka and kafka-python."""
    file = folder / "client.properties"
    file.write_text(text_of(listeners, listener, settings, folder))
    assert kafka_configs(folder, listeners, listener) == "came in"
    connection = find_connection("demo", file=file)
    with open_cluster(connection, cluster_id=listeners.cluster_id) as cluster:
        assert cluster.describe() == ()


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed")
def test_what_a_store_is_to_be_converted_by(listeners: Listeners, folder: Path) -> None:
    """The commands in the error convert Java's stores to files that both clients read."""
    make_stores(folder)
    settings = {
        "security.protocol": "SSL",
        "ssl.truststore.location": "trust store.jks",
        "ssl.keystore.location": "client.jks",
        "ssl.keystore.password": STORE_PASSWORD,
    }
    with pytest.raises(InvalidInput) as error:
        opened(listeners, folder, settings)
    follow(error.value, folder)
    settings |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": "trust store.pem"}
    with pytest.raises(InvalidInput) as error:
        opened(listeners, folder, settings)
    follow(error.value, folder)
    del settings["ssl.keystore.password"]
    settings |= {"ssl.keystore.type": "PEM", "ssl.keystore.location": "client.pem"}
    settings |= {"ssl.key.password": STORE_PASSWORD}
    with open_cluster(opened(listeners, folder, settings), cluster_id=None) as cluster:
        assert cluster.describe() == ()


def opened(listeners: Listeners, folder: Path, settings: Mapping[str, str]) -> Connection:
    """Return the connection of a file with these settings."""
    lines = {"bootstrap.servers": listeners.addresses["MUTUAL_TLS"], **settings}
    text = "".join(f"{name}={value}\n" for name, value in lines.items())
    return Connection.parse(text, name="demo", source="client.properties", folder=folder)


def make_stores(folder: Path) -> None:
    """Create Java's stores of the authority and of the client, by Java's own tool."""
    certificate, *chain = load_pem_x509_certificates((folder / "client.pem").read_bytes())
    lock = BestAvailableEncryption(STORE_PASSWORD.encode())
    p12 = pkcs12.serialize_key_and_certificates(
        b"client", unlocked(folder), certificate, chain, lock
    )
    (folder / "first.p12").write_bytes(p12)
    to_jks = "keytool -importkeystore -srckeystore first.p12 -destkeystore client.jks"
    run(f"{to_jks} -deststoretype JKS", folder)
    to_trust = "keytool -importcert -noprompt -file ca.pem -keystore 'trust store.jks'"
    run(f"{to_trust} -storetype JKS", folder)


def follow(refusal: InvalidInput, folder: Path) -> None:
    """Run the commands in an error message, as a person would."""
    commands = [line for line in str(refusal).splitlines() if line.startswith("    ")]
    assert commands != []
    for command in commands:
        run(command.strip(), folder)


def run(command: str, folder: Path) -> None:
    """Run a command that asks for passwords, each with the same answer."""
    path = f"{Path(find_java()).resolve().parent}{os.pathsep}{os.environ['PATH']}"
    ran = subprocess.run(
        ["/bin/sh", "-c", command],
        cwd=folder,
        env={**os.environ, "PATH": path},
        input=f"{STORE_PASSWORD}\n" * 4,
        capture_output=True,
        text=True,
        check=False,
        start_new_session=True,  # no terminal to ask
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
