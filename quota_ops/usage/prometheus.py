"""Queries to the HTTP API of a Prometheus, with clear errors.

Every failure means that use is unknown: a response that is partial, by its warnings, is one too.
"""

import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus

import httpx
import msgspec
from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_exponential

from quota_ops.connections.deadlines import call_within
from quota_ops.model.errors import InvalidInput, UseUnknown
from quota_ops.model.text import clean_text, counted
from quota_ops.usage.connection import PrometheusConnection

_CONNECT, _READ = 5.0, 120.0
"""Seconds to connect, and seconds without a byte: a query of a day may take a minute."""
_TOTAL = 300.0
"""Seconds that one response may take."""
_LARGEST = 64 * 2**20
"""The most bytes of a response; a larger one is divided into smaller queries."""
_LONGEST = 300
"""The most characters of a server's text in an error."""
_APART = 60.0
"""By how many seconds clocks may differ."""
_ATTEMPTS = 3
_TRY_AGAIN = frozenset({429, 502, 503, 504})
REJECTED = {
    401: "The server does not accept the credentials. Check {secret}.",
    403: "The credentials may not query it. Check {secret}, and the tenant if it has several.",
    404: "No Prometheus API is there. url is what comes before /api/v1: Mimir, for example, needs "
    "/prometheus.",
    429: "The server limits queries, or those of this tenant: try again later, or raise the limit.",
}
"""What a status means here, and what to do."""
TOO_LARGE = (
    "The server rejects even a query for a short time. Raise its limit, such as "
    "--query.max-samples, or narrow `match`."
)
FAILED = "The log of the server shows why. Try again when it works."
NO_API = (
    "No Prometheus API is there, but perhaps a login page or a proxy. url is what comes before "
    "/api/v1; check {secret}, too."
)
INCOMPLETE = "Check what is between this machine and the server, and how busy it is."
NO_TLS = (
    "Check the ssl.* settings of the connection. ssl.ca.location is the authority that signed the "
    "server's certificate, which must be for the host in url."
)
_TOO_MUCH = ("too many samples", "max number of", "maxsamplesperquery", "limit", "timed out")
"""Parts of the texts in which servers refuse what smaller queries do not exceed."""


class Sample(msgspec.Struct, frozen=True, array_like=True):
    """A value of a series at a time, in seconds since 1970."""

    time: float
    value: float


class Series(msgspec.Struct, frozen=True):
    """A series of a response: its labels, and one value (instant) or its values (a range)."""

    metric: dict[str, str]
    value: Sample | None = None
    values: tuple[Sample, ...] = ()


class _Data(msgspec.Struct, frozen=True):
    result: list[Series] = []


class _Response(msgspec.Struct, frozen=True):
    status: str
    data: _Data | None = None
    error: str | None = None
    warnings: list[str] = []
    is_partial: bool = msgspec.field(default=False, name="isPartial")


class QueryTooLarge(UseUnknown):
    """The server would have to read more for a query than it allows; smaller ones may work."""


class _Busy(UseUnknown):
    """The server could not be reached, or is overloaded: the same query may work soon."""


@dataclass(frozen=True)
class Prometheus:
    """A server, for the time of a block."""

    connection: PrometheusConnection
    client: httpx.Client = field(repr=False)
    patience: float | None = None
    """After how many seconds a query is given up, which then is not tried again."""

    def query(self, expression: str, at: datetime) -> list[Series]:
        """Return the series of an expression at a time.

        Raises QueryTooLarge if the server would have to read too much, UseUnknown with its response
        for anything else that is no complete answer.
        """
        form = {
            "query": expression,
            "time": f"{at.timestamp():.3f}",
            # Thanos and VictoriaMetrics would leave out what does not respond.
            "partial_response": "false",
            "deny_partial_response": "1",
        }
        retrying = Retrying(
            retry=retry_if_exception_type(_Busy),
            stop=stop_after_attempt(1 if self.patience else _ATTEMPTS),
            wait=wait_exponential(multiplier=0.2, max=5),
            reraise=True,
        )
        return retrying(self._send, form)

    def _send(self, form: Mapping[str, str]) -> list[Series]:
        url = f"{self.connection.url}/api/v1/query"

        def send() -> tuple[httpx.Response, bytes]:
            with self.client.stream("POST", url, data=form) as response:
                self._compare_clocks(response.headers.get("Date"))  # before a body takes its time
                return response, _read_body(response)

        try:
            # Each byte renews the time limits of httpx.
            response, body = call_within(self.patience or _TOTAL, send)
        except TimeoutError:
            raise UseUnknown(
                f"{self._name()} did not complete a response within {self.patience or _TOTAL:g} s",
                INCOMPLETE,
            ) from None
        except httpx.RequestError as error:
            text = _explain(error)
            did, remedy = "cannot be reached", "Check its url in the connection, and the network."
            if "[SSL" in text:
                did, remedy = "cannot be reached by TLS", NO_TLS
            elif isinstance(error, (httpx.ReadError, httpx.ReadTimeout, httpx.RemoteProtocolError)):
                did, remedy = "did not complete a response", INCOMPLETE
            raise _Busy(f"{self._name()} {did}: {text}", remedy) from None
        if response.status_code in _TRY_AGAIN:
            raise self._reject(_Busy, response.status_code, body, FAILED)
        try:
            # Values are texts, of which msgspec reads NaN and -Inf.
            readable = body.replace(b',"+Inf"]', b',"Infinity"]')
            found = msgspec.json.decode(readable, type=_Response, strict=False)
        except msgspec.MsgspecError:
            has_api = response.status_code >= HTTPStatus.BAD_REQUEST
            otherwise = FAILED if has_api else NO_API
            raise self._reject(UseUnknown, response.status_code, body, otherwise) from None
        if found.status != "success" or found.data is None:
            too_much = any(words in str(found.error).lower() for words in _TOO_MUCH)
            is_large = response.status_code in {400, 422, 500} and too_much
            raise self._reject(
                QueryTooLarge if is_large else UseUnknown,
                response.status_code,
                str(found.error).encode(),
                TOO_LARGE if is_large else FAILED,
            )
        if found.warnings or found.is_partial:
            why = found.warnings[0] if found.warnings else "parts of its data did not respond"
            raise UseUnknown(
                f"{self._name()} gave a partial response: {clean_text(why)[:_LONGEST]}",
                "Nothing is concluded from a part. Try again when all of its stores respond.",
            )
        return found.data.result

    def _compare_clocks(self, date: str | None) -> None:
        """Raise UseUnknown if this machine's clock is not that of the server."""
        try:
            theirs = parsedate_to_datetime(date or "")
        except ValueError:
            return
        ahead = (datetime.now(UTC) - theirs.replace(tzinfo=UTC)).total_seconds()
        if abs(ahead) > _APART:
            minutes = counted(round(abs(ahead) / 60), "minute")
            verb = "ahead of" if ahead > 0 else "behind"
            raise UseUnknown(
                f"the clock of this machine is {minutes} {verb} that of "
                f"{self._name()}, so which samples are of which time is unknown",
                "Correct the clock that is wrong.",
            )

    def _name(self) -> str:
        return f"the Prometheus {self.connection.name} ({self.connection.url})"

    def _reject(
        self, kind: type[UseUnknown], status: int, body: bytes, otherwise: str
    ) -> UseUnknown:
        text = clean_text(body.decode(errors="replace"))[:_LONGEST]
        remedy = REJECTED.get(status, otherwise)
        did = "sent no result, but" if remedy == NO_API else "rejected a query with"
        return kind(
            f"{self._name()} {did} HTTP {status}" + (f": {text}" if text else ""),
            remedy.format(secret=self.connection.secret()),
        )


@contextmanager
def open_prometheus(
    connection: PrometheusConnection, *, patience: float | None = None
) -> Iterator[Prometheus]:
    """Open a server for queries; nothing is sent yet.

    No redirect is followed and no setting of the environment is used, so credentials are sent to
    the connection's address alone. With `patience`, a query gives up after so many seconds, and is
    not tried again. Raises InvalidInput for certificates that cannot be read.
    """
    try:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        if connection.url.startswith("https:"):  # reading the authorities of the machine is slow
            context = ssl.create_default_context(cafile=connection.authorities)
        if connection.certificate:
            context.load_cert_chain(*connection.certificate)
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        raise InvalidInput(
            f"{connection.source}: a certificate or key cannot be read: {error}."
        ) from None
    with httpx.Client(
        headers=connection.headers,
        auth=connection.login,
        verify=context,
        timeout=httpx.Timeout(patience or _READ, connect=_CONNECT),
        trust_env=False,
    ) as client:
        yield Prometheus(connection, client, patience)


def _read_body(response: httpx.Response) -> bytes:
    body = bytearray()
    for part in response.iter_bytes():
        body += part
        if len(body) > _LARGEST:
            raise QueryTooLarge(f"a response has more than {_LARGEST >> 20} MB")
    return bytes(body)


def _explain(error: httpx.RequestError) -> str:
    if isinstance(error, httpx.ConnectTimeout):
        return f"no connection within {_CONNECT:.0f} s"
    if isinstance(error, httpx.TimeoutException):
        return f"it sent nothing for {_READ:.0f} s"
    return str(error) or type(error).__name__
