"""The rules for combinations of settings: which settings are missing or have no effect."""

import re
from collections.abc import Mapping, Sequence
from urllib.parse import urlsplit

from quota_ops.connections import Line, is_loopback
from quota_ops.kafka.connection.settings import DEFAULTS, OAUTHBEARER, SETTINGS
from quota_ops.model.errors import InvalidInput

_BY_PASSWORD = ("sasl.mechanism", "sasl.username", "sasl.password")
_BY_TOKEN = (
    "sasl.oauthbearer.method",
    "sasl.oauthbearer.token.endpoint.url",
    "sasl.oauthbearer.client.id",
    "sasl.oauthbearer.client.secret",
)

_LABEL = r"[A-Za-z0-9_-]{1,63}"
_SERVER = re.compile(
    r" *(?:(?P<protocol>[A-Za-z_]+)://)?"
    rf"(?:{_LABEL}(?:\.{_LABEL})*\.?|\[[0-9A-Fa-f:.]+(?:%[\w.-]+)?\])"
    r"(?::(?P<port>[0-9]{1,5}) *)?",
    re.ASCII,
)
"""The addresses that librdkafka and kafka-python parse alike, with hosts that IDNA can encode."""
_PORTS = range(1, 1 << 16)


def check_together(lines: Mapping[str, Line], source: str) -> None:
    """Raise InvalidInput when settings are missing, have no effect, or contradict each other."""

    def require(names: Sequence[str], why: str) -> None:
        missing = [name for name in names if name not in lines]
        if missing:
            raise InvalidInput(f"{source}: {' and '.join(missing)} missing: {why}.")

    if "bootstrap.servers" not in lines:
        raise InvalidInput(f"{source}: bootstrap.servers is missing.")
    written = lines.get("security.protocol")
    protocol = written.value if written else DEFAULTS["security.protocol"]
    _check_servers(lines["bootstrap.servers"], protocol)
    by_token = "sasl.mechanism" in lines and lines["sasl.mechanism"].value == OAUTHBEARER
    _refuse_idle(lines, protocol, by_token=by_token)
    if by_token:
        require(_BY_TOKEN, f"sasl.mechanism={OAUTHBEARER} needs {', '.join(_BY_TOKEN)}")
        _check_tokens(lines)
    elif "sasl" in protocol:
        require(_BY_PASSWORD, f"security.protocol={protocol} needs {', '.join(_BY_PASSWORD)}")
    forms = {name: _find_form(lines, f"ssl.{name}") for name in ("ca", "certificate", "key")}
    if forms["certificate"] and not forms["key"]:
        require(("ssl.key.location",), f"{forms['certificate']} needs it")
    if not forms["certificate"] and (forms["key"] or "ssl.key.password" in lines):
        require(("ssl.certificate.location",), "a key has no effect without it")


def _check_servers(line: Line, protocol: str) -> None:
    servers = line.value.split(",")
    for number, server in enumerate(servers, start=1):
        read = _SERVER.fullmatch(server)
        start = f"{line.place}: address {number} of {len(servers)} in bootstrap.servers"
        if read is None or int(read["port"] or _PORTS[-1]) not in _PORTS:
            raise InvalidInput(
                f"{start} is not host:port.",
                "Write host:port with a port from 1 to 65535, an IPv6 address as [::1]:9092, and "
                "separate addresses by commas.",
            )
        if (read["protocol"] or protocol).lower() != protocol:
            raise InvalidInput(
                f"{start} has a different protocol than security.protocol, which is {protocol}.",
                "Remove the protocol from the address, or correct security.protocol.",
            )


def _refuse_idle(lines: Mapping[str, Line], protocol: str, *, by_token: bool) -> None:
    for name, line in lines.items():
        layer = SETTINGS[name].layer
        part = "sasl" if layer in {"password", "oauthbearer"} else layer
        if part is not None and part not in protocol.split("_"):
            raise InvalidInput(
                f"{line.place}: {name} has no effect with security.protocol={protocol}.",
                f"Remove it, or set the security.protocol that uses {part.upper()}.",
            )
        if layer == ("password" if by_token else "oauthbearer") and "sasl.mechanism" in lines:
            mechanism = lines["sasl.mechanism"]
            raise InvalidInput(
                f"{line.place}: {name} has no effect with sasl.mechanism={mechanism.value}.",
                f"Remove it, or set another sasl.mechanism ({mechanism.place}).",
            )


def _find_form(lines: Mapping[str, Line], name: str) -> str | None:
    """Return the setting with a file's path or with its text. Raises InvalidInput for both."""
    file, text = f"{name}.location", f"{name}.pem"
    if file in lines and text in lines:
        raise InvalidInput(
            f"{lines[text].place}: {text} and {file} set the same thing; remove one."
        )
    return next((form for form in (file, text) if form in lines), None)


_ENDPOINT = "sasl.oauthbearer.token.endpoint.url"
_EXTENSIONS = "sasl.oauthbearer.extensions"
_EXTENSION = re.compile(r"(?!auth=)[A-Za-z]+=[!-+\--~ ]*")
"""An extension of RFC 7628, without a comma, which is the separator."""


def _check_tokens(lines: Mapping[str, Line]) -> None:
    """Raise InvalidInput when the token endpoint or the extensions are malformed."""
    _check_endpoint(lines[_ENDPOINT])
    extensions = lines.get(_EXTENSIONS)
    if extensions and not all(map(_EXTENSION.fullmatch, extensions.value.split(","))):
        raise InvalidInput(
            f"{extensions.place}: {_EXTENSIONS} are not valid SASL extensions.",
            "Write name=value,name=value, with only letters in the names, and no name `auth`.",
        )


def _check_endpoint(line: Line) -> None:
    """Require HTTPS, except on this machine: the client's secret is sent to the endpoint."""
    try:
        url = urlsplit(line.value)
        named = (url.hostname or "").encode("idna")  # a lookup encodes it the same way
        usable = bool(named and url.port != 0) and "@" not in url.netloc
    except ValueError:
        usable = False
    if not usable or re.search(r"[^!-~]|#", line.value):
        raise InvalidInput(
            f"{line.place}: {_ENDPOINT} is not a URL that a token can be requested from.",
            "Write https://HOST/PATH, without a name or password in it.",
        )
    if url.scheme != "https" and not (url.scheme == "http" and is_loopback(str(url.hostname))):
        raise InvalidInput(
            f"{line.place}: {_ENDPOINT} must begin with https://, because a secret is sent there.",
            "http:// is allowed only for a loopback address.",
        )
