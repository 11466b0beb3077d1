"""The name that a client certificate gives to the brokers."""

from pathlib import Path

_KEYWORDS = frozenset({"CN", "C", "L", "ST", "STREET", "O", "OU", "DC", "UID"})
"""The attributes that Java writes by a keyword; it writes the value of any other as `#` and hex."""


def read_subject(pem: str) -> str | None:
    """The subject of the first certificate in a PEM text, as a broker names it.

    None where it is no certificate, or its subject has an attribute without a keyword. A broker's
    `ssl.principal.mapping.rules` may still make another name of it. Source: X500Principal.getName,
    which DefaultKafkaPrincipalBuilder calls.
    """
    from cryptography import x509  # noqa: PLC0415 - few connections have a certificate

    try:
        subject = x509.load_pem_x509_certificate(pem.encode()).subject
    except ValueError:
        return None
    if {one.rfc4514_attribute_name for one in subject} - _KEYWORDS:
        return None
    return subject.rfc4514_string()


def read_subject_of_file(path: Path) -> str | None:
    """The subject of the first certificate in a file, as `read_subject`; None where unreadable."""
    try:
        return read_subject(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError):
        return None
