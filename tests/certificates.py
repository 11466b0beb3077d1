"""Certificates that tests create for themselves, valid for a day."""

import ipaddress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

KEY_PASSWORD = "k3y"


@dataclass(frozen=True)
class Certificate:
    """A certificate and its private key."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey


def make_certificates(folder: Path, client_name: str) -> None:
    """Write two authorities and the certificates of broker, client (key locked) and stranger.

    The client's certificate has an intermediate authority, which the client has to present as well.
    """
    authority, other = issue("authority"), issue("other authority")
    between = issue("between", authority, signs=True)
    broker, client = issue("broker", authority), issue(client_name, between)
    stranger = issue("stranger", other)
    texts = {
        "ca.pem": pem(authority),
        "other-ca.pem": pem(other),
        "broker.pem": key_pem(broker) + pem(broker),
        "client.pem": pem(client) + pem(between),
        "client.key": key_pem(client, KEY_PASSWORD),
        "stranger.pem": pem(stranger),
        "stranger.key": key_pem(stranger),
        "none-revoked.pem": revoked(authority),
        "broker-revoked.pem": revoked(authority, broker),
    }
    for name, content in texts.items():
        (folder / name).write_bytes(content)


def issue(name: str, by: Certificate | None = None, *, signs: bool = False) -> Certificate:
    """Create a certificate for 127.0.0.1 alone; it `signs` others, also as a root."""
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    constraints = x509.BasicConstraints(ca=signs or by is None, path_length=None)
    address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(by.certificate.subject if by else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(constraints, critical=True)
        .add_extension(x509.SubjectAlternativeName([address]), critical=False)
    )
    return Certificate(builder.sign(by.key if by else key, hashes.SHA256()), key)


def revoked(by: Certificate, *certificates: Certificate) -> bytes:
    """Return an authority's list of revoked certificates, as a PEM text."""
    now = datetime.now(UTC)
    builder = (
        x509.CertificateRevocationListBuilder()
        .issuer_name(by.certificate.subject)
        .last_update(now - timedelta(hours=1))
        .next_update(now + timedelta(days=1))
    )
    for certificate in certificates:
        entry = x509.RevokedCertificateBuilder().serial_number(
            certificate.certificate.serial_number
        )
        builder = builder.add_revoked_certificate(entry.revocation_date(now).build())
    return builder.sign(by.key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


def pem(issued: Certificate) -> bytes:
    """Return the certificate as a PEM text."""
    return issued.certificate.public_bytes(serialization.Encoding.PEM)


def key_pem(issued: Certificate, password: str | None = None) -> bytes:
    """Return the private key as a PEM text, encrypted if there is a password."""
    lock: serialization.KeySerializationEncryption = serialization.NoEncryption()
    if password is not None:
        lock = serialization.BestAvailableEncryption(password.encode())
    pkcs8 = serialization.PrivateFormat.PKCS8
    return issued.key.private_bytes(serialization.Encoding.PEM, pkcs8, lock)
