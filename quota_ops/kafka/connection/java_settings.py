"""Translates the settings of Kafka's Java clients into librdkafka's.

Sources: AdminClientConfig, SslConfigs and SaslConfigs of Kafka.
"""

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import NoReturn

from quota_ops.connections import Entry
from quota_ops.kafka.connection.jaas import parse_jaas
from quota_ops.kafka.connection.settings import ALIASES, JAVA_NAMES, NOT_OFFERED, SETTINGS
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
"""Java's settings for stores, and librdkafka's equivalents for PEM files."""


def translate_stores(java: Mapping[str, Entry]) -> Iterator[Entry]:
    """Yield PEM stores by librdkafka's names. Raises InvalidInput with how to convert any other."""
    for store in (_TRUST, _KEYS):
        _require_pem(store, java)
    for name, equivalents in STORE_SETTINGS.items():
        if name in java:
            for other in equivalents:
                yield rename_entry(java[name], other)


def rename_entry(entry: Entry, name: str) -> Entry:
    """Return an entry with another name; its place still shows the name in the file."""
    if name == entry.name:
        return entry
    return Entry(name, entry.value, f"{entry.place}, {entry.name}")


def _require_pem(store: str, java: Mapping[str, Entry]) -> None:
    settings = [entry for name, entry in java.items() if name.startswith(f"{store}.")]
    if not settings:
        return
    written = java.get(f"{store}.type")
    kind = written.value.upper() if written else "JKS"  # Java's default
    location = java.get(f"{store}.location")
    if kind == "PEM":
        if password := java.get(f"{store}.password"):
            raise InvalidInput(
                f"{password.place}: {password.name} does not apply to PEM; Kafka rejects it too.",
                "Remove it; the password of an encrypted key is ssl.key.password.",
            )
    elif location and kind in {"JKS", "PKCS12"} and PurePath(location.value).suffix != ".pem":
        _refuse_store(store, kind, location)
    else:
        raise InvalidInput(
            f"{(written or settings[0]).place}: {store}.type is {kind}; quota-ops reads only PEM.",
            f"If the store is PEM, write {store}.type=PEM.",
        )


def _refuse_store(store: str, kind: str, location: Entry) -> NoReturn:
    """Raise InvalidInput with the commands that convert a store to PEM.

    Java and its keytool also read a PKCS#12 file whose type is set to JKS.
    """
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
    write += ["ssl.key.password with the password that you gave openssl"] if store == _KEYS else []
    found = "PKCS12" if is_p12 else kind
    lines = "".join(f"\n    {command}" for command in commands)
    raise InvalidInput(
        f"{location.place}: {location.name} is a {found} store; quota-ops reads only PEM.",
        f"Convert it, then write {', '.join(write)} and no {store}.password:{lines}",
    )


_BLANK = "".join(map(chr, range(ord(" ") + 1)))
"""The characters that String.trim removes; Kafka trims every value."""
_JAAS = "sasl.jaas.config"
_HOST_CHECK = "ssl.endpoint.identification.algorithm"
_OAUTH = "sasl.oauthbearer"
_SAME = {
    "bootstrap.servers",
    "client.id",
    "security.protocol",
    "sasl.mechanism",
    f"{_OAUTH}.token.endpoint.url",
    f"{_OAUTH}.scope",
    f"{_OAUTH}.client.credentials.client.id",
    f"{_OAUTH}.client.credentials.client.secret",
}
_EQUAL_TO_DEFAULTS = {
    "ssl.enabled.protocols": {"TLSv1.2,TLSv1.3", "TLSv1.3,TLSv1.2"},
    "ssl.protocol": {"TLS", "TLSv1.3"},
    "sasl.login.callback.handler.class": {
        "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler",
        "org.apache.kafka.common.security.oauthbearer.secured.OAuthBearerLoginCallbackHandler",
    },
    f"{_OAUTH}.header.urlencode": {"false"},
}
"""Settings that are accepted only with the value that quota-ops uses anyway."""
_KNOWN = {*_SAME, _JAAS, _HOST_CHECK, *STORE_SETTINGS, *_EQUAL_TO_DEFAULTS}
_SECURITY = ("sasl.", "ssl.", "security.", "config.providers")
_PASSWORD = {"username": "sasl.username", "password": "sasl.password"}
_TOKEN = {
    "clientId": f"{_OAUTH}.client.id",
    "clientSecret": f"{_OAUTH}.client.secret",
    "scope": f"{_OAUTH}.scope",
}
_MODULES = {
    "PlainLoginModule": (("PLAIN",), _PASSWORD),
    "ScramLoginModule": (("SCRAM-SHA-256", "SCRAM-SHA-512"), _PASSWORD),
    "OAuthBearerLoginModule": (("OAUTHBEARER",), _TOKEN),
}
"""The mechanisms of a login module, and its options by librdkafka's names."""
_OTHER_MODULES = {"Krb5LoginModule": "GSSAPI", "IAMLoginModule": "AWS_MSK_IAM"}
_EXTENSION = "extension_"


def translate_settings(entries: Sequence[Entry]) -> list[Entry]:
    """Return the settings by librdkafka's names; their places also show the Java name.

    Raises InvalidInput at the first security setting that is not supported, and one InvalidInput
    for all other settings that a connection does not have: none is ignored.
    """
    _refuse_librdkafkas(entries)
    java: dict[str, Entry] = {}
    for entry in (entry._replace(value=entry.value.strip(_BLANK)) for entry in entries):
        if entry.name in java:
            _refuse(entry, f"is already set at {java[entry.name].place}")
        java[entry.name] = entry
    _refuse_unknown(java.values())
    same = [entry for entry in java.values() if entry.name in _SAME]
    return [*same, *_host_check(java), *_login(java), *translate_stores(java)]


def _refuse_librdkafkas(entries: Sequence[Entry]) -> None:
    java = next(entry for entry in entries if entry.name.startswith(JAVA_NAMES))
    for entry in entries:
        if entry.name in {*SETTINGS, *ALIASES} - _KNOWN:
            raise InvalidInput(
                f"{entry.place}: {entry.name} is a librdkafka setting, but {java.name} "
                f"({java.place}) is a setting of Kafka's Java clients.",
                "Write a connection with the names of one of them.",
            )


def _refuse_unknown(entries: Iterable[Entry]) -> None:
    foreign = [entry for entry in entries if entry.name not in _KNOWN or _differs(entry)]
    for entry in foreign:
        if entry.name.startswith(_SECURITY):
            raise InvalidInput(
                f"{entry.place}: {entry.shown} is an unsupported security setting; "
                "quota-ops does not connect rather than ignore it."
            )
    if foreign:
        others = [f"{entry.shown} ({entry.place})" for entry in foreign[1:]]
        nor = f", nor is {', nor '.join(others)}" if others else ""
        raise InvalidInput(
            f"{foreign[0].place}: {foreign[0].shown} is not a setting for describing and "
            f"altering quotas{nor}.",
            "Remove it: quota-ops has its own timeouts, and ignores no setting silently.",
        )


def _differs(entry: Entry) -> bool:
    return (
        entry.name in _EQUAL_TO_DEFAULTS
        and entry.value.replace(" ", "") not in _EQUAL_TO_DEFAULTS[entry.name]
    )


def _host_check(java: Mapping[str, Entry]) -> Iterator[Entry]:
    if entry := java.get(_HOST_CHECK):
        yield entry._replace(value=entry.value or "none")  # an empty value turns it off in Java


def _login(java: Mapping[str, Entry]) -> Iterator[Entry]:
    entry = java.get(_JAAS)
    if entry is None:
        return
    module, options = parse_jaas(entry.value, entry.place)
    if module not in _MODULES:
        raise InvalidInput(
            f"{entry.place}: {_JAAS} names {module}; quota-ops supports {', '.join(_MODULES)}.",
            NOT_OFFERED.get(_OTHER_MODULES.get(module, "")),
        )
    mechanisms, names = _MODULES[module]
    mechanism = java.get("sasl.mechanism")
    if mechanism and mechanism.value.upper() not in mechanisms:
        _refuse(
            entry, f"names {module}, which does not match the sasl.mechanism of {mechanism.place}"
        )
    if names is _TOKEN:
        yield rename_entry(entry._replace(value="oidc"), f"{_OAUTH}.method")
        yield from _extensions(entry, options)
    for option, value in options.items():
        if option in names:
            yield rename_entry(entry._replace(value=value), names[option])
        elif names is not _TOKEN or not option.startswith(_EXTENSION):
            _refuse(entry, f"sets {option}, which quota-ops does not support for {module}")


def _extensions(entry: Entry, options: Mapping[str, str]) -> Iterator[Entry]:
    found = [name for name in options if name.startswith(_EXTENSION)]
    if any("," in options[name] for name in found):
        _refuse(entry, "has an extension with a comma, which librdkafka cannot express")
    if found:
        pairs = (f"{name.removeprefix(_EXTENSION)}={options[name]}" for name in found)
        yield rename_entry(entry._replace(value=",".join(pairs)), f"{_OAUTH}.extensions")


def _refuse(entry: Entry, what: str) -> NoReturn:
    raise InvalidInput(f"{entry.place}: {entry.shown} {what}.")
