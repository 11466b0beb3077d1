"""The settings of a connection by librdkafka's names, and their name in each client.

Sources: CONFIGURATION.md of librdkafka; KafkaConnectionManager.DEFAULT_CONFIG of kafka-python.
"""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

PROTOCOLS = ("plaintext", "ssl", "sasl_plaintext", "sasl_ssl")
OAUTHBEARER = "OAUTHBEARER"
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", OAUTHBEARER)
_INSTEAD = "let the brokers offer SCRAM or client certificates too."
NOT_OFFERED = {
    "GSSAPI": f"Kerberos is not supported: confluent-kafka is built without it; {_INSTEAD}",
    "AWS_MSK_IAM": f"MSK's IAM authentication is not supported: librdkafka lacks it; {_INSTEAD}",
}
"""Mechanisms that users may expect, and what to use instead."""


class Setting(Struct, frozen=True):
    """A setting: librdkafka's name, and the rules for its value.

    `layer` is the requirement without which the setting has no effect: sasl or ssl in the
    security.protocol, or a sasl.mechanism by password or oauthbearer.
    `is_pem` marks a value that is a PEM text; otherwise another setting names a PEM file.
    """

    name: str
    layer: str | None = None
    choices: tuple[str, ...] = ()
    is_file: bool = False
    is_pem: bool = False


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
"""The prefixes of names that only Kafka's Java clients use."""

DEFAULTS = {"client.id": "quota-ops", "security.protocol": "plaintext"}

TOKEN_SETTINGS = ("sasl.oauthbearer.", "https.")
"""The prefixes of the settings for requesting a token."""

_KAFKA_PYTHON = {
    "client.id": "client_id",
    "sasl.mechanism": "sasl_mechanism",
    "sasl.username": "sasl_plain_username",
    "sasl.password": "sasl_plain_password",
}


def map_to_confluent(properties: Mapping[str, str]) -> dict[str, Any]:
    """Return the properties for confluent-kafka: unchanged, but without the token settings."""
    return {
        name: value for name, value in properties.items() if not name.startswith(TOKEN_SETTINGS)
    }


def map_to_kafka_python(properties: Mapping[str, str]) -> dict[str, Any]:
    """Return the keyword arguments for kafka-python's clients, except for TLS and addresses.

    TLS comes from `build_tls_context`, and addresses from the brokers.
    """
    options = {
        known: properties[name] for name, known in _KAFKA_PYTHON.items() if name in properties
    }
    return options | {"security_protocol": properties["security.protocol"].upper()}
