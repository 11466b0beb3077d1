"""A connection: the addresses and credentials of one cluster, kept outside Git."""

from pathlib import Path

from quota_ops.connections import Settings
from quota_ops.kafka.connection.file import read_file, resolve_settings
from quota_ops.kafka.connection.settings import DEFAULTS, OAUTHBEARER

_EXAMPLE = """\
    bootstrap.servers=kafka-1:9094,kafka-2:9094
    security.protocol=sasl_ssl
    sasl.mechanism=SCRAM-SHA-512
    sasl.username=svc-quota
    sasl.password=${env:KAFKA_PASSWORD}
    ssl.ca.location=/etc/kafka/ca.pem"""
SANDBOX = "demo"
"""The name of the connection that `quota-ops sandbox start` writes."""
_STARTED = """\
Run `quota-ops sandbox start`: it starts a Kafka on this machine and writes that file.
  For your own cluster, write the file yourself"""


class Connection(Settings):
    """The resolved settings of one cluster."""

    read_entries = staticmethod(read_file)
    resolve = staticmethod(resolve_settings)

    @property
    def properties(self) -> dict[str, str]:
        """The settings by librdkafka's names, including secrets and defaults."""
        return {**DEFAULTS, **{name: line.value for name, line in self.lines.items()}}

    @property
    def protocol(self) -> str:
        """The security.protocol, in lower case."""
        return self.properties["security.protocol"]

    @property
    def uses_tokens(self) -> bool:
        """Whether it authenticates with OAuth tokens."""
        return self.properties.get("sasl.mechanism") == OAUTHBEARER

    @property
    def principal(self) -> str:
        """The Kafka principal that the brokers see, as far as the settings reveal it.

        Source: DefaultKafkaPrincipalBuilder.
        """
        if self.uses_tokens:
            return f"User:<the subject of {self.properties['sasl.oauthbearer.client.id']}'s token>"
        if "sasl" in self.protocol:
            return f"User:{self.properties['sasl.username']}"
        if "ssl.certificate.location" in self.lines:
            file = self.properties["ssl.certificate.location"]
            return f"User:{read_subject_of_file(Path(file)) or f'<the subject of {file}>'}"
        if "ssl.certificate.pem" in self.lines:
            subject = read_subject(self.properties["ssl.certificate.pem"])
            return f"User:{subject or '<the subject of ssl.certificate.pem>'}"
        return "User:ANONYMOUS"

    def place(self, setting: str) -> str:
        """Return the place of a setting, `demo.properties:3`, or a text for one that is not set."""
        return self.lines[setting].place if setting in self.lines else f"not set in {self.source}"

    def secret(self, setting: str) -> str:
        """Return a name for a secret in messages: its `${...}` reference, or its place."""
        line = self.lines.get(setting)
        if line and line.reference:
            return f"the secret behind {line.reference}"
        return f"{setting} ({self.place(setting)})"


def find_connection(
    name: str, *, file: Path | None = None, before: str | None = None
) -> Connection:
    """Find the connection to a cluster by name: see `Settings.find`."""
    remedy = _STARTED if name == SANDBOX else "Write that file"
    first = "--connection FILE  not given"
    return Connection.find(name, _EXAMPLE, file=file, first=first, before=before, remedy=remedy)


_KEYWORDS = frozenset({"CN", "C", "L", "ST", "STREET", "O", "OU", "DC", "UID"})
"""The attributes that Java writes with a keyword; it encodes other values as `#` and hex digits."""


def read_subject(pem: str) -> str | None:
    """Return the subject of the first certificate in a PEM text, as a broker names it.

    None if it is not a certificate, or its subject has an attribute without a keyword. A broker's
    `ssl.principal.mapping.rules` may still map it to another name. Source: X500Principal.getName,
    which DefaultKafkaPrincipalBuilder calls.
    """
    from cryptography import x509  # few connections have a certificate

    try:
        subject = x509.load_pem_x509_certificate(pem.encode()).subject
    except ValueError:
        return None
    if {attribute.rfc4514_attribute_name for attribute in subject} - _KEYWORDS:
        return None
    return subject.rfc4514_string()


def read_subject_of_file(path: Path) -> str | None:
    """Return the subject of the first certificate in a file; None when it cannot be read."""
    try:
        return read_subject(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError):
        return None
