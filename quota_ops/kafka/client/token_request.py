"""Requests a token from an OAuth token endpoint; each kind of failure has its own error."""

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

from quota_ops.connections.deadlines import call_within
from quota_ops.kafka.connection import Connection
from quota_ops.model.errors import InvalidInput, LoginFailed, Unreachable
from quota_ops.model.moment import timed

_log = logging.getLogger(__name__)

_PREFIX = "sasl.oauthbearer."
_URL, _CLIENT, _SECRET = (
    f"{_PREFIX}{name}" for name in ("token.endpoint.url", "client.id", "client.secret")
)
_CA = "https.ca.location"
_LONGEST_RESPONSE = 2**20
_LONGEST_REASON = 200
_LONGEST_LIFETIME = 10**9
_LIFETIME = 60.0
"""The lifetime of a token in seconds, if the response does not set one."""


class _Response(NamedTuple):
    status: int
    fields: dict[str, Any]


class _NoRedirect(request.HTTPRedirectHandler):
    """A handler that sends the secret to the address in the settings, and to no other."""

    def redirect_request(self, *_arguments: object) -> None:
        """Return the redirect as the response."""


def request_token(connection: Connection, seconds: float) -> tuple[str, float]:
    """Return a token and its lifetime in seconds.

    Raises Unreachable (no response, or a server error), LoginFailed (a refusal, or a response
    without a token), InvalidInput (authorities that cannot be read).
    """
    try:
        with timed(_log, logging.INFO, f"connection {connection.name}: token request"):
            response = call_within(seconds, lambda: _post(connection, seconds))
    except URLError as error:
        raise _explain_no_response(connection, error.reason, seconds) from None
    except (OSError, HTTPException) as error:
        raise _explain_no_response(connection, error, seconds) from None
    if response.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        raise _make_unreachable(connection, f"it responded with HTTP status {response.status}")
    if response.status in {HTTPStatus.BAD_REQUEST, HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}:
        raise _explain_refusal(connection, response)
    token = response.fields.get("access_token")
    if response.status != HTTPStatus.OK or not isinstance(token, str) or not _is_token(token):
        raise LoginFailed(
            f"{_start(connection)}: the response, with HTTP status {response.status}, has none.",
            f"Check {_URL} ({connection.place(_URL)}). Nothing was read or changed.",
        )
    lifetime = response.fields.get("expires_in")
    if not isinstance(lifetime, int | float) or not 0 < lifetime < _LONGEST_LIFETIME:
        lifetime = _LIFETIME
    return token, float(lifetime)


def _post(connection: Connection, seconds: float) -> _Response:
    properties = connection.properties
    url, scope = properties[_URL], properties.get(f"{_PREFIX}scope")
    form = {"grant_type": "client_credentials"} | ({"scope": scope} if scope else {})
    posted = request.Request(url, urlencode(form).encode(), {"Accept": "application/json"})  # noqa: S310 - the connection's rules check the scheme
    posted.add_unredirected_header("Authorization", f"Basic {_encode_login(connection)}")
    handlers: list[request.BaseHandler] = [_NoRedirect()]
    if url.startswith("https:"):
        handlers.append(request.HTTPSHandler(context=_build_trust(connection)))
    else:
        handlers.append(request.ProxyHandler({}))  # plain HTTP is only for loopback: no proxy
    try:
        with request.build_opener(*handlers).open(posted, timeout=seconds) as response:
            return _Response(response.status, _parse(response.read(_LONGEST_RESPONSE)))
    except HTTPError as error:
        with error:
            return _Response(error.code, _parse(error.read(_LONGEST_RESPONSE)))


def _encode_login(connection: Connection) -> str:
    properties = connection.properties
    return base64.b64encode(f"{properties[_CLIENT]}:{properties[_SECRET]}".encode()).decode()


def _build_trust(connection: Connection) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=connection.properties.get(_CA))
    except OSError:
        raise InvalidInput(
            f"{connection.place(_CA)}: {_CA} contains no certificate in PEM format."
        ) from None
    # Python 3.13 refuses certificates of private authorities that librdkafka and Java trust.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context


def _parse(body: bytes) -> dict[str, Any]:
    try:
        fields = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return fields if isinstance(fields, dict) else {}


def _is_token(text: str) -> bool:
    return bool(text) and text.isascii() and text.isprintable() and " " not in text


def _start(connection: Connection) -> str:
    properties = connection.properties
    url = urlsplit(properties[_URL])
    at = f"{url.scheme}://{url.netloc}{url.path}"
    return (
        f"connection {connection.name}: no token for OAuth client {properties[_CLIENT]!r} from {at}"
    )


def _make_unreachable(connection: Connection, why: str) -> Unreachable:
    remedy = f"Check {_URL} ({connection.place(_URL)}). Nothing was read or changed."
    return Unreachable(f"{_start(connection)}: {why}.", remedy)


def _explain_no_response(
    connection: Connection, cause: object, seconds: float
) -> Unreachable | LoginFailed:
    if isinstance(cause, ssl.SSLCertVerificationError):
        return LoginFailed(
            f"{_start(connection)}: its certificate is not trusted: {cause.verify_message}.",
            f"Check {_CA} ({connection.place(_CA)}) and the host in {_URL} "
            f"({connection.place(_URL)}). Nothing was read or changed.",
        )
    if isinstance(cause, TimeoutError):
        return _make_unreachable(connection, f"no response within {seconds:.3g} seconds")
    why = cause.strerror if isinstance(cause, OSError) and cause.strerror else cause
    return _make_unreachable(connection, str(why))


def _explain_refusal(connection: Connection, response: _Response) -> LoginFailed:
    texts = [response.fields.get(name) for name in ("error", "error_description")]
    why = ": ".join(text for text in texts if isinstance(text, str)) or "no reason"
    for secret in (connection.properties[_SECRET], _encode_login(connection)):
        why = why.replace(secret, "...")
    shown = "".join(char if char.isprintable() else "?" for char in why[:_LONGEST_REASON])
    return LoginFailed(
        f"{_start(connection)}: rejected with HTTP status {response.status} ({shown}).",
        f"Check {_CLIENT} ({connection.place(_CLIENT)}) and {connection.secret(_SECRET)}. "
        "Nothing was read or changed.",
    )
