"""Which settings of a connection need each other, and which would have no effect."""

import re
from collections.abc import Mapping, Sequence
from ipaddress import ip_address
from urllib.parse import urlsplit

from quota_ops.kafka.connection.file import Line
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
"""What librdkafka and kafka-python read in the same way, and no name that IDNA cannot encode."""
_PORTS = range(1, 1 << 16)


def check_together(lines: Mapping[str, Line], source: str) -> None:
    """Raises InvalidInput where settings do not make a connection together."""

    def need(names: Sequence[str], why: str) -> None:
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
        need(_BY_TOKEN, f"sasl.mechanism={OAUTHBEARER} needs {', '.join(_BY_TOKEN)}")
        check(lines)
    elif "sasl" in protocol:
        need(_BY_PASSWORD, f"security.protocol={protocol} needs {', '.join(_BY_PASSWORD)}")
    forms = {name: _one_form(lines, f"ssl.{name}") for name in ("ca", "certificate", "key")}
    if forms["certificate"] and not forms["key"]:
        need(("ssl.key.location",), f"{forms['certificate']} needs it")
    if not forms["certificate"] and (forms["key"] or "ssl.key.password" in lines):
        need(("ssl.certificate.location",), "the key is of no use without it")


def _check_servers(line: Line, protocol: str) -> None:
    servers = line.value.split(",")
    for number, server in enumerate(servers, start=1):
        read = _SERVER.fullmatch(server)
        told = f"{line.place}: address {number} of {len(servers)} in bootstrap.servers"
        if read is None or int(read["port"] or _PORTS[-1]) not in _PORTS:
            raise InvalidInput(
                f"{told} is not host:port.",
                "Write host:port, the port from 1 to 65535, an IPv6 address as [::1]:9092, and a "
                "comma between two.",
            )
        if (read["protocol"] or protocol).lower() != protocol:
            raise InvalidInput(
                f"{told} is of another protocol than security.protocol, which is {protocol}.",
                "Leave out what stands before ://, or mend the one that is wrong.",
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


def _one_form(lines: Mapping[str, Line], name: str) -> str | None:
    """The name by which a file's path or its text is set; both would contradict each other."""
    file, text = f"{name}.location", f"{name}.pem"
    if file in lines and text in lines:
        raise InvalidInput(f"{lines[text].place}: {text} says again what {file} says.")
    return next((form for form in (file, text) if form in lines), None)


_ENDPOINT = "sasl.oauthbearer.token.endpoint.url"
_EXTENSIONS = "sasl.oauthbearer.extensions"
_EXTENSION = re.compile(r"(?!auth=)[A-Za-z]+=[!-+\--~ ]*")
"""As RFC 7628 has them, without the comma that stands between two."""


def check(lines: Mapping[str, Line]) -> None:
    """Raises InvalidInput at a token endpoint or at extensions that are not as they must be."""
    _check_endpoint(lines[_ENDPOINT])
    extensions = lines.get(_EXTENSIONS)
    if extensions and not all(map(_EXTENSION.fullmatch, extensions.value.split(","))):
        raise InvalidInput(
            f"{extensions.place}: {_EXTENSIONS} is not as SASL has them.",
            "Write name=value,name=value, with letters alone in the names, and no name `auth`.",
        )


def _check_endpoint(line: Line) -> None:
    """A client's secret is sent there, so nobody else may read it on the way."""
    try:
        url = urlsplit(line.value)
        named = (url.hostname or "").encode("idna")  # as a lookup does, which else would fail
        usable = bool(named and url.port != 0) and "@" not in url.netloc
    except ValueError:
        usable = False
    if not usable or re.search(r"[^!-~]|#", line.value):
        raise InvalidInput(
            f"{line.place}: {_ENDPOINT} is not an address that can be asked.",
            "Write https://HOST/PATH, without a name or password in it.",
        )
    if url.scheme != "https" and not (url.scheme == "http" and _is_here(str(url.hostname))):
        raise InvalidInput(
            f"{line.place}: {_ENDPOINT} must begin with https://, for a secret is sent there.",
            "http:// is for a loopback address alone.",
        )


def _is_here(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
