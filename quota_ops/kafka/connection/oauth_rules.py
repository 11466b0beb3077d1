"""What the settings of an OAuth login must be like."""

import re
from collections.abc import Mapping
from ipaddress import ip_address
from urllib.parse import urlsplit

from quota_ops.kafka.connection.file import Line
from quota_ops.model.errors import InvalidInput

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
