"""A connection: how to reach one cluster, and as whom; it stays outside of Git."""

import logging
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn, Self

from quota_ops.kafka.connection.file import Line, read_lines, read_settings
from quota_ops.kafka.connection.rules import check_together
from quota_ops.kafka.connection.settings import DEFAULTS, OAUTHBEARER
from quota_ops.model.errors import InvalidInput
from quota_ops.model.policy import CONNECTION_NAME, CONNECTION_RULE

_log = logging.getLogger(__name__)
_EXAMPLE = """\
    bootstrap.servers=kafka-1:9094,kafka-2:9094
    security.protocol=sasl_ssl
    sasl.mechanism=SCRAM-SHA-512
    sasl.username=svc-quota
    sasl.password=${env:KAFKA_PASSWORD}
    ssl.ca.location=/etc/kafka/ca.pem"""
SANDBOX = "demo"
"""The connection of the broker that `quota-ops sandbox start` starts."""
_STARTED = """\
`quota-ops sandbox start` starts a Kafka on this machine and writes that file.
  For a cluster of your own write it yourself"""


@dataclass(frozen=True, slots=True)
class Connection:
    """The settings of one cluster, resolved; `repr` shows no value, and it is never pickled.

    `source` is the file as a person would type it, or words for where else the text came from.
    """

    name: str
    source: str
    lines: Mapping[str, Line] = field(repr=False)

    @classmethod
    def parse(cls, text: str, *, name: str, source: str, folder: Path | None = None) -> Self:
        """Read a connection file's text; InvalidInput names the line that is not as it must be.

        `folder` is what relative paths are relative to: the current folder when there is none.
        """
        lines = read_lines(text, source=source, folder=folder or Path())
        check_together(lines, source)
        return cls(name, source, lines)

    @classmethod
    def of(cls, settings: Mapping[str, str], *, name: str, source: str) -> Self:
        """Make a connection of settings that stand elsewhere than in a file, taken as they are.

        Raises InvalidInput, naming the source, as `parse` does.
        """
        lines = read_settings(settings, source=source)
        check_together(lines, source)
        return cls(name, source, lines)

    @property
    def properties(self) -> dict[str, str]:
        """The settings by librdkafka's names, secrets included, what is left out by default too."""
        return {**DEFAULTS, **{name: line.value for name, line in self.lines.items()}}

    @property
    def protocol(self) -> str:
        """The security.protocol, in lower case."""
        return self.properties["security.protocol"]

    @property
    def uses_tokens(self) -> bool:
        """Whether it logs in by OAuth tokens, not by a password."""
        return self.properties.get("sasl.mechanism") == OAUTHBEARER

    @property
    def principal(self) -> str:
        """The Kafka principal that the brokers see, as far as it can be known from here.

        Source: DefaultKafkaPrincipalBuilder.
        """
        if self.uses_tokens:
            return f"User:<as a token of {self.properties['sasl.oauthbearer.client.id']} says>"
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
        """Where a setting is written, `demo.properties:3`, or that it is not."""
        return self.lines[setting].place if setting in self.lines else f"not set in {self.source}"

    def secret(self, setting: str) -> str:
        """A secret as it is told of: the reference that stands in its place, or where it is set."""
        line = self.lines.get(setting)
        if line and line.reference:
            return f"the secret behind {line.reference}"
        return f"{setting} ({self.place(setting)})"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a connection holds secrets, so it is not pickled; find it again by name")


def connections_folder() -> Path:
    """The folder of the connection files: QUOTA_OPS_CONNECTIONS, or the user's configuration."""
    if chosen := os.environ.get("QUOTA_OPS_CONNECTIONS"):
        return Path(chosen)
    from platformdirs import user_config_path  # noqa: PLC0415 - only where no folder was named

    return user_config_path("quota-ops") / "connections"


def find_connection(
    name: str, *, file: Path | None = None, before: str | None = None
) -> Connection:
    """Find a connection by name, and read it.

    The first of these counts: `file`; the file whose path is in QUOTA_OPS_CONNECTION_NAME;
    NAME.properties in `connections_folder()`. Raises InvalidInput when there is none, or when it
    cannot be read. `before` names what was looked for in vain, where nobody can give a `file`.
    """
    if not CONNECTION_NAME.fullmatch(name):
        raise InvalidInput(
            f"{name!r} cannot be the name of a connection.", f"A name is {CONNECTION_RULE}."
        )
    if file is not None:
        return _read(name, file, "given as --connection")
    variable = "QUOTA_OPS_CONNECTION_" + re.sub(r"[^A-Z0-9]", "_", name.upper())
    if path := os.environ.get(variable):
        return _read(name, Path(path), f"named by ${variable}")
    usual = connections_folder() / f"{name}.properties"
    if _may_exist(usual):
        return _read(name, usual, "of that name")
    first = "--connection FILE  not given"
    remedy = _STARTED if name == SANDBOX else "Write that file"
    if before:
        first, remedy = f"{before}  not defined", f"Define {before}, or write that file"
    raise InvalidInput(
        f"there is no connection {name}. Looked at:\n"
        f"    {first}\n"
        f"    ${variable}  not set\n"
        f"    {usual}  does not exist",
        f"{remedy}, for example:\n{_EXAMPLE}",
    )


def _may_exist(file: Path) -> bool:
    """Whether a file is there, or nobody may look: to read it then says why."""
    try:
        return file.exists()
    except OSError:
        return True


def _read(name: str, file: Path, why: str) -> Connection:
    try:
        text = file.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise InvalidInput(f"connection {name}: {file} is not UTF-8.") from None
    except OSError as error:
        raise InvalidInput(
            f"connection {name}: cannot read {file}, {why}: {error.strerror}."
        ) from None
    _log.info("connection %s: read %s", name, file)
    return Connection.parse(text, name=name, source=str(file), folder=file.parent)


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
