"""A connection to a Prometheus: its address and credentials, kept outside Git."""

import re
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path
from urllib.parse import urlsplit

from quota_ops import connections
from quota_ops.model.errors import InvalidInput

_EXAMPLE = """\
    url=https://prometheus.example:9090
    bearer.token=${file:/etc/quota-ops/prometheus-token}
    ssl.ca.location=/etc/quota-ops/ca.pem"""
_URL, _TOKEN, _USER, _PASSWORD = "url", "bearer.token", "basic.username", "basic.password"
_TENANT, _TENANT_HEADER = "tenant", "tenant.header"
_CA, _CERTIFICATE, _KEY = "ssl.ca.location", "ssl.certificate.location", "ssl.key.location"
_KEY_PASSWORD = "ssl.key.password"  # noqa: S105 - the name of a setting
SETTINGS = (
    *(_URL, _TOKEN, _USER, _PASSWORD, _TENANT, _TENANT_HEADER),
    *(_CA, _CERTIFICATE, _KEY, _KEY_PASSWORD),
)
_NEEDS = {
    _USER: _PASSWORD,
    _PASSWORD: _USER,
    _TENANT_HEADER: _TENANT,
    _CERTIFICATE: _KEY,
    _KEY: _CERTIFICATE,
    _KEY_PASSWORD: _KEY,
}
_HEADER = re.compile(r"[A-Za-z0-9-]{1,100}")


class PrometheusConnection(connections.Settings):
    """The resolved settings of a Prometheus."""

    @staticmethod
    def resolve(
        entries: Sequence[connections.Entry], source: str, folder: Path | None
    ) -> dict[str, connections.Line]:
        """Return the settings, known ones that fit together."""
        lines: dict[str, connections.Line] = {}
        for entry in entries:
            _require_known(entry, lines)
            value, references = connections.resolve_references(entry, folder)
            if not value or not value.isprintable():
                connections.refuse(entry.place, entry.name, "has no value that can be sent")
            if entry.name.endswith(".location"):
                file = (folder or Path()) / value
                value = str(connections.find_file(entry.name, file, entry.place))
            lines[entry.name] = connections.Line(value, entry.place, references)
        _check_together(lines, source)
        return lines

    @property
    def url(self) -> str:
        """The address before `/api/v1`."""
        return self.lines[_URL].value.rstrip("/")

    @property
    def headers(self) -> dict[str, str]:
        """The headers of each request, including secrets."""
        headers = {"User-Agent": "quota-ops"}
        if _TOKEN in self.lines:
            headers["Authorization"] = f"Bearer {self.lines[_TOKEN].value}"
        if _TENANT in self.lines:
            header = self.get(_TENANT_HEADER) or "X-Scope-OrgID"
            headers[header] = self.lines[_TENANT].value
        return headers

    @property
    def login(self) -> tuple[str, str] | None:
        """The user and password of HTTP Basic authentication, if any."""
        user, password = self.get(_USER), self.get(_PASSWORD)
        return None if user is None or password is None else (user, password)

    @property
    def certificate(self) -> tuple[str, str, str | None] | None:
        """The files of the client's certificate and key, and the key's password, if any."""
        certificate, key = self.get(_CERTIFICATE), self.get(_KEY)
        if certificate is None or key is None:
            return None
        return certificate, key, self.get(_KEY_PASSWORD)

    @property
    def authorities(self) -> str | None:
        """The file of the certificate authorities to trust, if not those of this machine."""
        return self.get(_CA)

    def get(self, setting: str) -> str | None:
        """Return the value of a setting, or None."""
        line = self.lines.get(setting)
        return None if line is None else line.value

    def secret(self) -> str:
        """Return the place of the credentials for a message, never their value."""
        for name in (_TOKEN, _PASSWORD, _CERTIFICATE):
            if line := self.lines.get(name):
                return f"{name} ({line.place})"
        return f"{self.source}, which has no credentials"


def find_prometheus(name: str, *, before: str | None = None) -> PrometheusConnection:
    """Find the connection to a Prometheus by name: see `Settings.find`."""
    return PrometheusConnection.find(name, _EXAMPLE, before=before)


def _require_known(entry: connections.Entry, lines: dict[str, connections.Line]) -> None:
    if entry.name not in SETTINGS:
        near = get_close_matches(entry.name, SETTINGS, n=1, cutoff=0.75)
        hint = f"The known settings are {', '.join(SETTINGS)}."
        raise InvalidInput(
            f"{entry.place}: {entry.shown} is not a setting of a connection to a Prometheus.",
            f"Did you mean {near[0]}?" if near else hint,
        )
    if entry.name in lines:
        connections.refuse(entry.place, entry.name, f"is already set at {lines[entry.name].place}")


def _check_together(lines: dict[str, connections.Line], source: str) -> None:
    if _URL not in lines:
        raise InvalidInput(f"{source}: url is missing.", f"Write it, for example:\n{_EXAMPLE}")
    for name, needed in _NEEDS.items():
        if name in lines and needed not in lines:
            connections.refuse(lines[name].place, name, f"has no effect without {needed}")
    if _TOKEN in lines and _USER in lines:
        connections.refuse(lines[_TOKEN].place, _TOKEN, f"and {_USER} cannot be used together")
    if (header := lines.get(_TENANT_HEADER)) and not _HEADER.fullmatch(header.value):
        connections.refuse(header.place, _TENANT_HEADER, "is not the name of an HTTP header")
    line = lines[_URL]
    try:
        url = urlsplit(line.value)
        is_usable = url.scheme in {"http", "https"} and bool(url.hostname) and url.port != 0
    except ValueError:
        is_usable = False
    if not is_usable or "@" in url.netloc or url.query or url.fragment:
        raise InvalidInput(
            f"{line.place}: url is not the address of a Prometheus.",
            "Write https://HOST:PORT, with a path if need be, and without a name or password.",
        )
    is_secret = _TOKEN in lines or _PASSWORD in lines
    if is_secret and url.scheme == "http" and not connections.is_loopback(str(url.hostname)):
        raise InvalidInput(
            f"{line.place}: url must begin with https://, because a secret is sent there.",
            "http:// with a secret is allowed only for a loopback address.",
        )
