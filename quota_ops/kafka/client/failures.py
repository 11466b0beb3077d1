"""Explains why a connection failed: turns librdkafka's log text into an error with a remedy."""

import re
from collections.abc import Mapping
from typing import NamedTuple

from quota_ops.kafka.connection import Connection
from quota_ops.model.errors import ClusterTrouble, LoginFailed, Unreachable
from quota_ops.model.runs.verification import ONLY_BOOTSTRAP

_FAIL = re.compile(
    r"(?:\w+://)?(?P<address>\S+?)/(?P<broker>bootstrap|\d+): "
    r"(?P<words>.*?)(?: \(after \d+ms in state (?P<state>\w+)[,)].*)?",
    re.DOTALL,
)


class Failure(NamedTuple):
    """A failed attempt: the address, the broker's id if known, and librdkafka's text."""

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
    """A cause: the text that identifies it, and its error; `passes` marks one worth a retry."""

    words: re.Pattern[str]
    error: type[ClusterTrouble]
    message: str
    remedy: str
    passes: bool = False

    def describe(self, failure: Failure, facts: Mapping[str, str]) -> ClusterTrouble:
        """Return the error for a failure with this cause."""
        match = self.words.search(failure.words)
        values = {**facts, **(match.groupdict() if match else {}), "address": failure.address}
        remedy = self.remedy.format(**values)
        if failure.broker is not None:
            remedy += f" The address is what broker {failure.broker} advertises. {ONLY_BOOTSTRAP}"
        return self.error(
            f"connection {facts['name']}: {self.message.format(**values)}.",
            f"{remedy} Nothing was read or changed.",
        )


_CHECK_PROTOCOL = "Check security.protocol ({protocol_place}), now {protocol}"
_CAUSES = (
    Cause(
        re.compile(r"Connect to \S+ failed: (?P<why>.*) in CONNECT"),
        Unreachable,
        "no broker at {address}: {why}",
        "Check that the broker runs, and check bootstrap.servers ({servers_place}).",
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
        "no response from {address}: the connection could not be opened",
        "Check bootstrap.servers ({servers_place}), the network and its firewalls.",
    ),
    Cause(
        re.compile(r"timed out in state"),
        Unreachable,
        "no response from {address}: it accepts connections, but sends nothing",
        "Check that it is a Kafka port (bootstrap.servers, {servers_place}), and that the broker "
        "is not frozen.",
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
        "the listener at {address} does not use authentication",
        _CHECK_PROTOCOL + "; without authentication it is {no_sasl}.",
    ),
    Cause(
        re.compile(r"SASL authentication error: (?P<why>.*) in AUTH"),
        LoginFailed,
        "the broker at {address} rejected the credentials of {who} (SASL {mechanism}: {why})",
        "Check {login}.",
    ),
    Cause(
        re.compile(r"Disconnected.* in APIVERSION_QUERY"),
        LoginFailed,
        "the listener at {address} closed the connection on plaintext, as TLS listeners do",
        _CHECK_PROTOCOL
        + "; with TLS it is {tls}. If that is right, a connection_creation_rate may "
        "limit this machine's address.",
    ),
    Cause(
        re.compile(r"Disconnected.* in UP"),
        LoginFailed,
        "the listener at {address} closed the connection on a request without authentication",
        _CHECK_PROTOCOL + "; with authentication it is {sasl}.",
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
        "{address} is not the address of a broker; a controller responds this way",
        "Check bootstrap.servers ({servers_place}): only brokers can describe quotas.",
    ),
    Cause(
        re.compile(r"Invalid response size"),
        ClusterTrouble,
        "the server at {address} does not speak Kafka's protocol",
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


def find_cause(failure: Failure) -> Cause:
    """Return the cause that a failure's text identifies."""
    return next((cause for cause in _CAUSES if cause.words.search(failure.words)), _OTHER)


def collect_facts(connection: Connection, distrust: str | None) -> dict[str, str]:
    """Return the facts of a connection that the messages use; they contain no secret.

    `distrust` is OpenSSL's reason for not trusting a certificate.
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
        **_collect_login_facts(connection),
        "distrust": _explain_distrust(properties, distrust),
        "ca_place": connection.place("ssl.ca.location"),
        "certificate": "the client certificate"
        if "ssl.certificate.location" in properties
        else "a client without a certificate",
        "certificate_place": connection.place("ssl.certificate.location"),
        "sasl": "sasl_ssl" if tls else "sasl_plaintext",
        "no_sasl": "ssl" if tls else "plaintext",
        "tls": "sasl_ssl" if sasl else "ssl",
        "no_tls": "sasl_plaintext" if sasl else "plaintext",
    }


def _explain_distrust(properties: Mapping[str, str], reason: str | None) -> str:
    own = "ssl.ca.pem" if "ssl.ca.pem" in properties else "this machine's certificate authorities"
    unsigned = f"none of {properties.get('ssl.ca.location', own)} signed it"
    if reason is None:
        return f"{unsigned}, or it is for another host"
    return unsigned if "issuer" in reason or "self-signed" in reason else reason


def _collect_login_facts(connection: Connection) -> dict[str, str]:
    """Return the user that authenticates, and what to check when a broker rejects that user."""
    if connection.uses_tokens:
        client, url = "sasl.oauthbearer.client.id", "sasl.oauthbearer.token.endpoint.url"
        return {
            "who": f"OAuth client {connection.properties[client]!r}",
            "login": "which tokens the broker accepts (issuer, audience, signature, lifetime), and "
            f"{url} ({connection.place(url)})",
        }
    return {
        "who": f"user {connection.properties.get('sasl.username', '')!r}",
        "login": f"sasl.username ({connection.place('sasl.username')}) and "
        f"{connection.secret('sasl.password')}",
    }
