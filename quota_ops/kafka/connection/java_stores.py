"""Translates Java's trust stores and key stores: PEM as it is, for others how to make them PEM.

Sources: SslConfigs and DefaultSslEngineFactory of Kafka; KIP-651 for PEM.
"""

import shlex
from collections.abc import Iterator, Mapping
from pathlib import PurePath
from typing import NoReturn

from quota_ops.kafka.connection.settings import Entry
from quota_ops.model.errors import InvalidInput

_TRUST, _KEYS = "ssl.truststore", "ssl.keystore"
STORE_SETTINGS = {
    f"{_TRUST}.type": (),
    f"{_TRUST}.location": ("ssl.ca.location",),
    f"{_TRUST}.certificates": ("ssl.ca.pem",),
    f"{_TRUST}.password": (),
    f"{_KEYS}.type": (),
    f"{_KEYS}.location": ("ssl.certificate.location", "ssl.key.location"),
    f"{_KEYS}.certificate.chain": ("ssl.certificate.pem",),
    f"{_KEYS}.key": ("ssl.key.pem",),
    f"{_KEYS}.password": (),
    "ssl.key.password": ("ssl.key.password",),
}
"""Java's settings, and librdkafka's that say the same of PEM."""


def translated_stores(java: Mapping[str, Entry]) -> Iterator[Entry]:
    """The stores by librdkafka's names; InvalidInput tells how to convert one that is not PEM."""
    for store in (_TRUST, _KEYS):
        _need_pem(store, java)
    for name, meant in STORE_SETTINGS.items():
        if name in java:
            for other in meant:
                yield renamed(java[name], other)


def renamed(entry: Entry, name: str) -> Entry:
    """An entry by its other name; its place says the name that it was written by."""
    if name == entry.name:
        return entry
    return Entry(name, entry.value, f"{entry.place}, {entry.name}")


def _need_pem(store: str, java: Mapping[str, Entry]) -> None:
    settings = [entry for name, entry in java.items() if name.startswith(f"{store}.")]
    if not settings:
        return
    written = java.get(f"{store}.type")
    kind = written.value.upper() if written else "JKS"  # as Java takes it
    location = java.get(f"{store}.location")
    if kind == "PEM":
        if password := java.get(f"{store}.password"):
            raise InvalidInput(
                f"{password.place}: {password.name} is not for PEM, as Kafka says too.",
                "Remove it; the password of a locked key is ssl.key.password.",
            )
    elif location and kind in {"JKS", "PKCS12"} and PurePath(location.value).suffix != ".pem":
        _tell_how_to_convert(store, kind, location)
    else:
        raise InvalidInput(
            f"{(written or settings[0]).place}: {store}.type is {kind}; quota-ops reads PEM alone.",
            f"Write {store}.type=PEM if that is what it is.",
        )


def _tell_how_to_convert(store: str, kind: str, location: Entry) -> NoReturn:
    """Java reads a PKCS#12 file that is called JKS too, and so does its keytool."""
    file = PurePath(location.value or "store")
    is_p12 = kind == "PKCS12" or file.suffix in {".p12", ".pfx"}
    pem = shlex.quote(str(file.with_suffix(".pem")))
    p12 = shlex.quote(str(file if is_p12 else file.with_suffix(".p12")))
    source = shlex.quote(str(file))
    if store == _KEYS:
        to_p12 = f"keytool -importkeystore -srckeystore {source} -destkeystore {p12}"
        commands = [f"openssl pkcs12 -in {p12} -out {pem}"]
        commands[:0] = [] if is_p12 else [f"{to_p12} -deststoretype PKCS12"]
    elif is_p12:
        commands = [f"openssl pkcs12 -in {p12} -nokeys -out {pem}"]
    else:
        commands = [f"keytool -list -rfc -keystore {source} > {pem}"]
    write = [f"{store}.type=PEM", f"{store}.location={pem}"]
    write += ["as ssl.key.password what openssl asked for"] if store == _KEYS else []
    found = "PKCS12" if is_p12 else kind
    lines = "".join(f"\n    {command}" for command in commands)
    raise InvalidInput(
        f"{location.place}: {location.name} is a {found} store; quota-ops reads PEM alone.",
        f"Convert it, then write {', '.join(write)} and no {store}.password:{lines}",
    )
