"""Parts of the configuration of brokers that only tests start."""

import base64
import uuid
from collections.abc import Mapping

SASL = {"SASL": "SASL_PLAINTEXT"}
"""A listener with logins, by its name and its security protocol."""


def generate_cluster_id() -> str:
    """Return a new cluster id in Kafka's format: 16 random bytes as 22 base64 characters."""
    text = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
    return generate_cluster_id() if text.startswith("-") else text  # "-" starts an option


def password_of(user: str) -> str:
    """Return the password of a user that logs in with PLAIN."""
    return f"{user}-secret"


def plain_logins(
    users: Mapping[str, str], listeners: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Return the properties by which users log in with SASL/PLAIN, each with a password."""
    logins = " ".join(f'user_{name}="{password}"' for name, password in users.items())
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"
    properties = {"sasl.enabled.mechanisms": "PLAIN"}
    for name, protocol in (listeners or SASL).items():
        if protocol.startswith("SASL_"):
            prefix = f"listener.name.{name.lower()}"
            properties[f"{prefix}.sasl.enabled.mechanisms"] = "PLAIN"
            properties[f"{prefix}.plain.sasl.jaas.config"] = f"{module} required {logins};"
    return properties
