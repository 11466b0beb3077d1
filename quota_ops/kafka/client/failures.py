"""Why a connection failed: librdkafka's words turned into an error that says what to do."""

import re
from collections.abc import Mapping
from typing import NamedTuple

from quota_ops.kafka.connection import Connection
from quota_ops.model.errors import ClusterTrouble, LoginFailed, Unreachable
from quota_ops.model.verification import ONLY_BOOTSTRAP

_FAIL = re.compile(
    r"(?:\w+://)?(?P<address>\S+?)/(?P<broker>bootstrap|\d+): "
    r"(?P<words>.*?)(?: \(after \d+ms in state (?P<state>\w+)[,)].*)?",
    re.DOTALL,
)


class Failure(NamedTuple):
    """One failed attempt: the address, the broker's id if it is known, and librdkafka's words."""

    address: str
    broker: str | None
    words: str

    @classmethod
    def parse(cls, text: str) -> "Failure | None":
        """Read `ADDRESS/BROKER: WORDS (after 3ms in state STATE)`; None for any other text."""
        match = _FAIL.fullmatch("".join(char if char.isprintable() else "?" for char in text))
        if match is None:
            return None
        broker = None if match["broker"] == "bootstrap" else match["broker"]
        words = f"{match['words']} in {match['state']}" if match["state"] else match["words"]
        return cls(match["address"], broker, words)


class Cause(NamedTuple):
    """A cause: the words it is known by, and what is said; `passes` is worth another try."""

    words: re.Pattern[str]
    error: type[ClusterTrouble]
    message: str
    remedy: str
    passes: bool = False

    def describe(self, failure: Failure, facts: Mapping[str, str]) -> ClusterTrouble:
        """The error that tells a person of this failure."""
        match = self.words.search(failure.words)
        told = {**facts, **(match.groupdict() if match else {}), "address": failure.address}
        remedy = self.remedy.format(**told)
        if failure.broker is not None:
            remedy += f" The address is what broker {failure.broker} advertises. {ONLY_BOOTSTRAP}"
        return self.error(
            f"cluster {facts['name']}: {self.message.format(**told)}.",
            f"{remedy} Nothing was read or changed.",
        )


_CHECK_PROTOCOL = "Check security.protocol ({protocol_place}), now {protocol}"
_CAUSES = (
    Cause(
        re.compile(r"Connect to \S+ failed: (?P<why>.*) in CONNECT"),
        Unreachable,
        "no broker at {address}: {why}",
        "Is it running? Check bootstrap.servers ({servers_place}).",
        passes=True,
    ),
    Cause(
        re.compile(r"Failed to resolve '.*?': (?P<why>.*) in CONNECT"),
        Unreachable,
        "the host of {address} is not known: {why}",
        "Check bootstrap.servers ({servers_place}).",
        passes=True,
    ),
    Cause(
        re.compile(r"timed out in state CONNECT\b"),
        Unreachable,
        "no answer from {address}: the connection could not be opened",
        "Check bootstrap.servers ({servers_place}), the network and its firewalls.",
    ),
    Cause(
        re.compile(r"timed out in state"),
        Unreachable,
        "no answer from {address}: it takes connections, and then stays silent",
        "Is it a Kafka port (bootstrap.servers, {servers_place}), and the broker not frozen?",
    ),
    Cause(
        re.compile(
            r"Unsupported SASL mechanism: broker's supported mechanisms: (?P<offered>.*) in"
        ),
        LoginFailed,
        "the broker at {address} does not offer SASL {mechanism}, only {offered}",
        "Check sasl.mechanism ({mechanism_place}).",
    ),
    Cause(
        re.compile(r"not valid in current SASL state"),
        LoginFailed,
        "the listener at {address} takes no logins",
        _CHECK_PROTOCOL + "; without a login it is {no_sasl}.",
    ),
    Cause(
        re.compile(r"SASL authentication error: (?P<why>.*) in AUTH"),
        LoginFailed,
        "the broker at {address} refused the login of {who} (SASL {mechanism}: {why})",
        "Check {login}.",
    ),
    Cause(
        re.compile(r"Disconnected.* in APIVERSION_QUERY"),
        LoginFailed,
        "the listener at {address} hung up on the first plaintext request, as TLS listeners do",
        _CHECK_PROTOCOL + "; with TLS it is {tls}.",
    ),
    Cause(
        re.compile(r"Disconnected.* in UP"),
        LoginFailed,
        "the listener at {address} hung up on a request without a login",
        _CHECK_PROTOCOL + "; with a login it is {sasl}.",
    ),
    Cause(
        re.compile(r"PLAINTEXT broker listener|wrong version number|packet length too long"),
        LoginFailed,
        "the listener at {address} does not speak TLS",
        _CHECK_PROTOCOL + "; without TLS it is {no_tls}.",
    ),
    Cause(
        re.compile(r"certificate verify failed"),
        LoginFailed,
        "the certificate of the broker at {address} is not trusted: {distrust}",
        "Check ssl.ca.location ({ca_place}) and the host in bootstrap.servers ({servers_place}).",
    ),
    Cause(
        re.compile(r"alert (?:bad certificate|certificate required|unknown ca|handshake failure)"),
        LoginFailed,
        "the broker at {address} did not accept {certificate}",
        "Check ssl.certificate.location ({certificate_place}).",
    ),
    Cause(
        re.compile(r"Required feature not supported by broker"),
        ClusterTrouble,
        "{address} is not the address of a broker; a controller answers like that",
        "Check bootstrap.servers ({servers_place}): quotas are described by brokers alone.",
    ),
    Cause(
        re.compile(r"Invalid response size"),
        ClusterTrouble,
        "what answers at {address} does not speak Kafka's protocol",
        "Check bootstrap.servers ({servers_place}).",
    ),
)
_OTHER = Cause(
    re.compile(r"(?P<words>.*)", re.DOTALL),
    Unreachable,
    "the connection to {address} failed: {words}",
    "Check the connection ({source}).",
    passes=True,
)


def cause_of(failure: Failure) -> Cause:
    """The cause by which a failure is known."""
    return next((cause for cause in _CAUSES if cause.words.search(failure.words)), _OTHER)


def facts_of(connection: Connection, distrust: str | None = None) -> dict[str, str]:
    """What the messages tell of a connection; no secret is among it.

    `distrust` are OpenSSL's words for why it does not trust a certificate.
    """
    properties, protocol = connection.properties, connection.protocol
    sasl, tls = "sasl" in protocol, "ssl" in protocol
    return {
        "name": connection.name,
        "source": connection.source,
        "protocol": protocol,
        "protocol_place": connection.place("security.protocol"),
        "servers_place": connection.place("bootstrap.servers"),
        "mechanism": properties.get("sasl.mechanism", ""),
        "mechanism_place": connection.place("sasl.mechanism"),
        **_login_facts(connection),
        "distrust": _distrust(properties, distrust),
        "ca_place": connection.place("ssl.ca.location"),
        "certificate": "our certificate"
        if "ssl.certificate.location" in properties
        else "a client without a certificate",
        "certificate_place": connection.place("ssl.certificate.location"),
        "sasl": "sasl_ssl" if tls else "sasl_plaintext",
        "no_sasl": "ssl" if tls else "plaintext",
        "tls": "sasl_ssl" if sasl else "ssl",
        "no_tls": "sasl_plaintext" if sasl else "plaintext",
    }


def _distrust(properties: Mapping[str, str], words: str | None) -> str:
    own = "ssl.ca.pem" if "ssl.ca.pem" in properties else "this machine's certificate authorities"
    unsigned = f"none of {properties.get('ssl.ca.location', own)} signed it"
    if words is None:
        return f"{unsigned}, or it is for another host"
    return unsigned if "issuer" in words or "self-signed" in words else words


def _login_facts(connection: Connection) -> dict[str, str]:
    """Who logs in, and what to look at when a broker refuses it."""
    if connection.uses_tokens:
        client, url = "sasl.oauthbearer.client.id", "sasl.oauthbearer.token.endpoint.url"
        return {
            "who": f"OAuth client {connection.properties[client]!r}",
            "login": f"whose tokens that broker takes (issuer, audience, signature, lifetime), and "
            f"{url} ({connection.place(url)})",
        }
    return {
        "who": f"user {connection.properties.get('sasl.username', '')!r}",
        "login": f"sasl.username ({connection.place('sasl.username')}) and "
        f"{connection.secret('sasl.password')}",
    }
