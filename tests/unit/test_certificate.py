"""The subject of a client certificate, as brokers write it into a principal."""

from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from quota_ops.kafka.connection import Connection, read_subject

CN, OU, O, C = (  # noqa: E741 - the field's own names
    NameOID.COMMON_NAME,
    NameOID.ORGANIZATIONAL_UNIT_NAME,
    NameOID.ORGANIZATION_NAME,
    NameOID.COUNTRY_NAME,
)


def pem(*attributes: tuple[x509.ObjectIdentifier, str]) -> str:
    """Return a certificate with this subject, in the order in which it is encoded."""
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    name = x509.Name([x509.NameAttribute(kind, value) for kind, value in attributes])
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now)
        .not_valid_after(now + timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    return made.public_bytes(serialization.Encoding.PEM).decode()


@pytest.mark.parametrize(
    ("attributes", "subject"),
    [
        ([(CN, "svc-quota")], "CN=svc-quota"),
        (
            [(C, "DE"), (O, "Shop"), (OU, "Platform"), (CN, "svc-quota")],
            "CN=svc-quota,OU=Platform,O=Shop,C=DE",
        ),
        ([(O, "Shop, Inc."), (CN, "a+b")], r"CN=a\+b,O=Shop\, Inc."),
        ([(CN, "a"), (NameOID.EMAIL_ADDRESS, "a@b")], None),
    ],
)
def test_subjects(attributes: list[tuple[x509.ObjectIdentifier, str]], subject: str | None) -> None:
    """Java writes the last attribute first; an unknown attribute gives no principal."""
    assert read_subject(pem(*attributes)) == subject


def test_what_is_no_certificate() -> None:
    """The principal then names the setting, as a value that cannot be known from here."""
    assert read_subject("nonsense") is None


def test_the_principal_can_be_copied() -> None:
    """The principal is the text that an ACL and `protect` accept."""
    properties = {
        "bootstrap.servers": "127.0.0.1:1",
        "security.protocol": "ssl",
        "ssl.certificate.pem": pem((O, "Shop"), (CN, "svc")),
        "ssl.key.pem": "-----BEGIN PRIVATE KEY-----",
    }
    connection = Connection.of(properties, name="demo", source="a test")

    assert connection.principal == "User:CN=svc,O=Shop"
