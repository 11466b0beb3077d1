"""Asks a token endpoint for a token; every way to get none has its own words."""

import base64
import json
import logging
import ssl
from http import HTTPStatus
from http.client import HTTPException
from typing import Any, NamedTuple
from urllib import request
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode, urlsplit

from quota_ops.kafka.client.deadlines import within
from quota_ops.kafka.connection import Connection
from quota_ops.model.errors import InvalidInput, LoginFailed, Unreachable
from quota_ops.model.moment import timed

_log = logging.getLogger(__name__)

_PREFIX = "sasl.oauthbearer."
_URL, _CLIENT, _SECRET = (
    f"{_PREFIX}{name}" for name in ("token.endpoint.url", "client.id", "client.secret")
)
_CA = "https.ca.location"
_LONGEST_ANSWER = 2**20
_LONGEST_WORDS = 200
_LONGEST_LIFETIME = 10**9
_LIFETIME = 60.0
"""Seconds, where the answer does not say for how long a token is valid."""


class _Answer(NamedTuple):
    status: int
    said: dict[str, Any]


class _NoRedirect(request.HTTPRedirectHandler):
    """A secret goes to the address that was written, and to no other."""

    def redirect_request(self, *_of_it: object) -> None:
        """Leave the answer as it is."""


def ask_for_token(connection: Connection, seconds: float) -> tuple[str, float]:
    """A token and for how many seconds it is valid.

    Raises Unreachable (no answer, or none now), LoginFailed (a refusal, or no token in the answer),
    InvalidInput (authorities that cannot be read).
    """
    try:
        with timed(_log, logging.INFO, f"connection {connection.name}: token request"):
            answer = within(seconds, lambda: _post(connection, seconds))
    except URLError as error:
        raise _not_asked(connection, error.reason, seconds) from None
    except (OSError, HTTPException) as error:
        raise _not_asked(connection, error, seconds) from None
    if answer.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        raise _unreachable(connection, f"it answered with HTTP status {answer.status}")
    if answer.status in {HTTPStatus.BAD_REQUEST, HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}:
        raise _refused(connection, answer)
    token = answer.said.get("access_token")
    if answer.status != HTTPStatus.OK or not isinstance(token, str) or not _is_token(token):
        raise LoginFailed(
            f"{_told(connection)}: what answers, with HTTP status {answer.status}, gives none.",
            f"Check {_URL} ({connection.place(_URL)}). Nothing was read or changed.",
        )
    lifetime = answer.said.get("expires_in")
    if not isinstance(lifetime, int | float) or not 0 < lifetime < _LONGEST_LIFETIME:
        lifetime = _LIFETIME
    return token, float(lifetime)


def _post(connection: Connection, seconds: float) -> _Answer:
    properties = connection.properties
    url, scope = properties[_URL], properties.get(f"{_PREFIX}scope")
    form = {"grant_type": "client_credentials"} | ({"scope": scope} if scope else {})
    asked = request.Request(url, urlencode(form).encode(), {"Accept": "application/json"})  # noqa: S310 - the connection's rules know the scheme
    asked.add_unredirected_header("Authorization", f"Basic {_login(connection)}")
    handlers: list[request.BaseHandler] = [_NoRedirect()]
    if url.startswith("https:"):
        handlers.append(request.HTTPSHandler(context=_trust(connection)))
    else:
        handlers.append(request.ProxyHandler({}))  # on this machine, and in plain text
    try:
        with request.build_opener(*handlers).open(asked, timeout=seconds) as response:
            return _Answer(response.status, _read(response.read(_LONGEST_ANSWER)))
    except HTTPError as error:
        with error:
            return _Answer(error.code, _read(error.read(_LONGEST_ANSWER)))


def _login(connection: Connection) -> str:
    properties = connection.properties
    return base64.b64encode(f"{properties[_CLIENT]}:{properties[_SECRET]}".encode()).decode()


def _trust(connection: Connection) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=connection.properties.get(_CA))
    except OSError:
        raise InvalidInput(f"{connection.place(_CA)}: {_CA} holds no certificate in PEM.") from None
    # Python 3.13 refuses certificates of private authorities that librdkafka and Java trust.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context


def _read(body: bytes) -> dict[str, Any]:
    try:
        said = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return said if isinstance(said, dict) else {}


def _is_token(text: str) -> bool:
    return bool(text) and text.isascii() and text.isprintable() and " " not in text


def _told(connection: Connection) -> str:
    properties = connection.properties
    url = urlsplit(properties[_URL])
    at = f"{url.scheme}://{url.netloc}{url.path}"
    return f"cluster {connection.name}: no token for OAuth client {properties[_CLIENT]!r} from {at}"


def _unreachable(connection: Connection, why: str) -> Unreachable:
    remedy = f"Check {_URL} ({connection.place(_URL)}). Nothing was read or changed."
    return Unreachable(f"{_told(connection)}: {why}.", remedy)


def _not_asked(connection: Connection, cause: object, seconds: float) -> Unreachable | LoginFailed:
    if isinstance(cause, ssl.SSLCertVerificationError):
        return LoginFailed(
            f"{_told(connection)}: its certificate is not trusted: {cause.verify_message}.",
            f"Check {_CA} ({connection.place(_CA)}) and the host in {_URL} "
            f"({connection.place(_URL)}). Nothing was read or changed.",
        )
    if isinstance(cause, TimeoutError):
        return _unreachable(connection, f"no answer within {seconds:.3g} seconds")
    why = cause.strerror if isinstance(cause, OSError) and cause.strerror else cause
    return _unreachable(connection, str(why))


def _refused(connection: Connection, answer: _Answer) -> LoginFailed:
    words = [answer.said.get(name) for name in ("error", "error_description")]
    why = ": ".join(word for word in words if isinstance(word, str)) or "no reason"
    for secret in (connection.properties[_SECRET], _login(connection)):
        why = why.replace(secret, "...")
    shown = "".join(char if char.isprintable() else "?" for char in why[:_LONGEST_WORDS])
    return LoginFailed(
        f"{_told(connection)}: refused with HTTP status {answer.status} ({shown}).",
        f"Check {_CLIENT} ({connection.place(_CLIENT)}) and {connection.secret(_SECRET)}. "
        "Nothing was read or changed.",
    )
