"""The settings that a connection may have, by librdkafka's names, and what each client calls them.

Sources: CONFIGURATION.md of librdkafka; KafkaConnectionManager.DEFAULT_CONFIG of kafka-python.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

PROTOCOLS = ("plaintext", "ssl", "sasl_plaintext", "sasl_ssl")
OAUTHBEARER = "OAUTHBEARER"
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", OAUTHBEARER)
_BESIDE = "brokers can offer SCRAM or client certificates beside it."
NOT_OFFERED = {
    "GSSAPI": f"Kerberos is not offered: confluent-kafka comes without it; {_BESIDE}",
    "AWS_MSK_IAM": f"MSK's IAM login is not offered: librdkafka does not have it; {_BESIDE}",
}
"""Mechanisms that people ask for, and what to do without."""


_LIKE_A_SETTING = re.compile(r"(?=[^.]*\.)[a-z0-9._-]{1,60}|acks|retries|debug")
"""What clients' settings look like, and the few of them without a dot."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting: librdkafka's name, and what its value must be.

    `layer` is what a connection must have lest it be ignored: sasl or ssl in its security.protocol,
    or by its sasl.mechanism a password or oauthbearer.
    `is_pem` is a value that is itself what the file of another setting would hold.
    """

    name: str
    layer: str | None = None
    choices: tuple[str, ...] = ()
    is_file: bool = False
    is_pem: bool = False


class Entry(NamedTuple):
    """A setting as it was written: its name, its value, and where, `demo.properties:3`."""

    name: str
    value: str
    place: str

    @property
    def shown(self) -> str:
        """Return the name for a message, unless it may be a part of a secret cut in two."""
        return self.name if _LIKE_A_SETTING.fullmatch(self.name) else "this name"

    def __repr__(self) -> str:
        return f"Entry({self.shown!r}, {self.place!r})"


SETTINGS = {
    setting.name: setting
    for setting in (
        Setting("bootstrap.servers"),
        Setting("client.id"),
        Setting("security.protocol", choices=PROTOCOLS),
        Setting("sasl.mechanism", layer="sasl", choices=MECHANISMS),
        Setting("sasl.username", layer="password"),
        Setting("sasl.password", layer="password"),
        Setting("sasl.oauthbearer.method", layer="oauthbearer", choices=("oidc",)),
        Setting("sasl.oauthbearer.token.endpoint.url", layer="oauthbearer"),
        Setting("sasl.oauthbearer.client.id", layer="oauthbearer"),
        Setting("sasl.oauthbearer.client.secret", layer="oauthbearer"),
        Setting("sasl.oauthbearer.scope", layer="oauthbearer"),
        Setting("sasl.oauthbearer.extensions", layer="oauthbearer"),
        Setting("https.ca.location", layer="oauthbearer", is_file=True),
        Setting("ssl.ca.location", layer="ssl", is_file=True),
        Setting("ssl.ca.pem", layer="ssl", is_pem=True),
        Setting("ssl.certificate.location", layer="ssl", is_file=True),
        Setting("ssl.certificate.pem", layer="ssl", is_pem=True),
        Setting("ssl.key.location", layer="ssl", is_file=True),
        Setting("ssl.key.pem", layer="ssl", is_pem=True),
        Setting("ssl.key.password", layer="ssl"),
        Setting("ssl.crl.location", layer="ssl", is_file=True),
        Setting("ssl.endpoint.identification.algorithm", layer="ssl", choices=("https", "none")),
    )
}

ALIASES = {
    "sasl.mechanisms": "sasl.mechanism",
    "metadata.broker.list": "bootstrap.servers",
    "sasl.oauthbearer.client.credentials.client.id": "sasl.oauthbearer.client.id",
    "sasl.oauthbearer.client.credentials.client.secret": "sasl.oauthbearer.client.secret",
}

JAVA_NAMES = ("sasl.jaas.config", "ssl.truststore.", "ssl.keystore.")
"""How the names begin that Kafka's Java clients alone have."""

DEFAULTS = {"client.id": "quota-ops", "security.protocol": "plaintext"}

TOKEN_SETTINGS = ("sasl.oauthbearer.", "https.")
"""How the settings begin by which a token is asked for."""

_KAFKA_PYTHON = {
    "client.id": "client_id",
    "sasl.mechanism": "sasl_mechanism",
    "sasl.username": "sasl_plain_username",
    "sasl.password": "sasl_plain_password",
}


def map_to_confluent(properties: Mapping[str, str]) -> dict[str, Any]:
    """The properties as confluent-kafka takes them: verbatim, but what a token is asked for by."""
    return {
        name: value for name, value in properties.items() if not name.startswith(TOKEN_SETTINGS)
    }


def map_to_kafka_python(properties: Mapping[str, str]) -> dict[str, Any]:
    """The properties as the keyword arguments of kafka-python's clients, except for those of TLS.

    It gets those, and where to connect to, from `tls_context` and the broker's address.
    """
    options = {
        known: properties[name] for name, known in _KAFKA_PYTHON.items() if name in properties
    }
    return options | {"security_protocol": properties["security.protocol"].upper()}
