"""Certificates and keys that librdkafka does not take: OpenSSL's words turned into what to mend."""

from pathlib import Path

from quota_ops.kafka.connection import Connection
from quota_ops.kafka.connection.settings import SETTINGS
from quota_ops.model.errors import InvalidInput

_NO_PEM = ("PEM lib", "no certificate or crl found", "not in PEM format")
_PASSWORD = "ssl.key.password"  # noqa: S105 - a setting's name


def unusable(connection: Connection, words: str) -> InvalidInput:
    """The error for `Failed to create admin client: ssl.key.location failed: error:...`."""
    name, _, why = words.partition("client: ")[2].partition(" failed: ")
    if name not in SETTINGS:
        return InvalidInput(f"{connection.source}: librdkafka does not take it: {words}.")
    told = f"{connection.place(name)}: {name} "
    if "key values mismatch" in why:
        return InvalidInput(f"{told}is not the key of the certificate beside it.")
    if name.startswith("ssl.key.") and _is_locked(connection, name):
        if _PASSWORD in connection.lines:
            place = connection.place(_PASSWORD)
            return InvalidInput(f"{told}is locked, and not by the {_PASSWORD} of {place}.")
        return InvalidInput(f"{told}is locked, and {_PASSWORD} is not set.")
    if any(one in why for one in _NO_PEM):
        what = "key" if name.startswith("ssl.key.") else "certificate"
        return InvalidInput(f"{told}holds no {what} in PEM.")
    return InvalidInput(f"{told}cannot be used: {why}.")


def _is_locked(connection: Connection, name: str) -> bool:
    value = connection.properties[name]
    text = value if name.endswith(".pem") else Path(value).read_text("utf-8", errors="replace")
    return "ENCRYPTED" in text
