"""The settings that a connection may have, by librdkafka's names, and what each client calls them.

Sources: CONFIGURATION.md of librdkafka; KafkaConnectionManager.DEFAULT_CONFIG of kafka-python.
"""

from collections.abc import Mapping
from dataclasses import dataclass

PROTOCOLS = ("plaintext", "ssl", "sasl_plaintext", "sasl_ssl")
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting: librdkafka's name, kafka-python's, and what its value must be.

    `layer` is the part of security.protocol (sasl, ssl) without which it would be ignored.
    """

    name: str
    kafka_python: str
    layer: str | None = None
    choices: tuple[str, ...] = ()
    is_file: bool = False


SETTINGS = {
    setting.name: setting
    for setting in (
        Setting("bootstrap.servers", "bootstrap_servers"),
        Setting("client.id", "client_id"),
        Setting("security.protocol", "security_protocol", choices=PROTOCOLS),
        Setting("sasl.mechanism", "sasl_mechanism", layer="sasl", choices=MECHANISMS),
        Setting("sasl.username", "sasl_plain_username", layer="sasl"),
        Setting("sasl.password", "sasl_plain_password", layer="sasl"),
        Setting("ssl.ca.location", "ssl_cafile", layer="ssl", is_file=True),
        Setting("ssl.certificate.location", "ssl_certfile", layer="ssl", is_file=True),
        Setting("ssl.key.location", "ssl_keyfile", layer="ssl", is_file=True),
        Setting("ssl.key.password", "ssl_password", layer="ssl"),
        Setting("ssl.crl.location", "ssl_crlfile", layer="ssl", is_file=True),
        Setting(
            "ssl.endpoint.identification.algorithm",
            "ssl_check_hostname",
            layer="ssl",
            choices=("https", "none"),
        ),
    )
}

ALIASES = {"sasl.mechanisms": "sasl.mechanism", "metadata.broker.list": "bootstrap.servers"}

DEFAULTS = {"client.id": "quota-ops", "security.protocol": "plaintext"}

JAVA_NAMES = {
    "sasl.jaas.config": "sasl.username and sasl.password",
    "ssl.truststore.location": "ssl.ca.location, a PEM file",
    "ssl.truststore.certificates": "ssl.ca.location, a PEM file",
    "ssl.truststore.password": "ssl.ca.location, a PEM file without a password",
    "ssl.truststore.type": "ssl.ca.location, a PEM file",
    "ssl.keystore.location": "ssl.certificate.location and ssl.key.location, PEM files",
    "ssl.keystore.certificate.chain": "ssl.certificate.location, a PEM file",
    "ssl.keystore.key": "ssl.key.location, a PEM file",
    "ssl.keystore.password": "ssl.key.password",
    "ssl.keystore.type": "ssl.certificate.location and ssl.key.location, PEM files",
}
"""What to write instead of the names that Kafka's Java clients use."""


def confluent_options(properties: Mapping[str, str]) -> dict[str, str]:
    """The properties as confluent-kafka takes them: verbatim."""
    return dict(properties)


def kafka_python_options(properties: Mapping[str, str]) -> dict[str, str | bool]:
    """The properties as the keyword arguments of kafka-python's clients."""
    options: dict[str, str | bool] = {
        SETTINGS[name].kafka_python: value for name, value in properties.items()
    }
    options["security_protocol"] = properties["security.protocol"].upper()
    options["ssl_check_hostname"] = (
        properties.get("ssl.endpoint.identification.algorithm", "https") == "https"
    )
    return options
