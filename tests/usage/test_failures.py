"""Servers that fail: every failure means that use is unknown, and says why."""

import json
import socket
import ssl
import time
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from threading import Thread

import pytest

from quota_ops.model.errors import InvalidInput, UseUnknown
from quota_ops.model.usage.series import Time
from quota_ops.usage import prometheus
from quota_ops.usage.connection import find_prometheus
from quota_ops.usage.prometheus import QueryTooLarge
from quota_ops.usage.samples import list_brokers, read_rates, read_scrapes
from quota_ops.usage.source import UsageSource
from tests.certificates import issue, key_pem, pem
from tests.usage.conftest import POLICY, connect
from tests.usage.recording import Answer, Question, serve

END = datetime(2026, 11, 26, tzinfo=UTC)
START = END - timedelta(hours=1)
TIME = Time(START, END)
NOTHING = Answer(200, '{"status":"success","data":{"resultType":"vector","result":[]}}')
ALICE = Answer(200, NOTHING.body.replace("[]", '[{"metric":{"user":"alice"},"value":[0,"1"]}]'))


def _error(kind: str, text: str) -> str:
    return json.dumps({"status": "error", "errorType": kind, "error": text})


WHO = "the Prometheus monitoring (URL)"
NO_API = prometheus.NO_API.format(secret="bearer.token (a test:2)")
PARTIAL = "Nothing is concluded from a part. Try again when all of its stores respond."


@pytest.mark.parametrize(
    ("answer", "message", "remedy"),
    [
        (
            Answer(401, "Unauthorized\n"),
            "rejected a query with HTTP 401: Unauthorized",
            "The server does not accept the credentials. Check bearer.token (a test:2).",
        ),
        (
            Answer(404, "404 page not found"),
            "rejected a query with HTTP 404: 404 page not found",
            prometheus.REJECTED[404],
        ),
        (Answer(302, ""), "sent no result, but HTTP 302", NO_API),
        (
            Answer(200, "<html>Log in</html>"),
            "sent no result, but HTTP 200: <html>Log in</html>",
            NO_API,
        ),
        (
            Answer(400, _error("bad_data", "invalid parameter")),
            "rejected a query with HTTP 400: invalid parameter",
            prometheus.FAILED,
        ),
        (
            Answer(422, _error("execution", "too many samples")),
            "rejected a query with HTTP 422: too many samples",
            prometheus.TOO_LARGE,
        ),
        (
            Answer(429, "too many requests"),
            "rejected a query with HTTP 429: too many requests",
            prometheus.REJECTED[429],
        ),
        (
            Answer(503, "<html>no healthy upstream</html>"),
            "rejected a query with HTTP 503: <html>no healthy upstream</html>",
            prometheus.FAILED,
        ),
        (
            Answer(200, _error("internal", "out of memory")),
            "rejected a query with HTTP 200: out of memory",
            prometheus.FAILED,
        ),
        (
            Answer(200, NOTHING.body[:-1] + ',"warnings":["store 2: no route to host"]}'),
            "gave a partial response: store 2: no route to host",
            PARTIAL,
        ),
        (
            Answer(200, NOTHING.body[:-1] + ',"isPartial":true}'),
            "gave a partial response: parts of its data did not respond",
            PARTIAL,
        ),
    ],
)
def test_a_rejected_query_is_explained(answer: Answer, message: str, remedy: str) -> None:
    """An error shows the server's own text and the remedy, and never the token."""
    with serve(lambda _asked, _headers: answer) as url:
        source = UsageSource.of(POLICY, connect(url, "bearer.token=secret-token"))
        with pytest.raises(UseUnknown) as raised:
            list_brokers(source, START, END)
    assert raised.value.message.replace(url, "URL") == f"{WHO} {message}"
    assert raised.value.remedy == remedy
    assert raised.value.exit_code == 6
    assert "secret-token" not in repr(source) + str(raised.value)


def test_a_connection_without_credentials_is_named() -> None:
    """If a server wants credentials and the connection has none, the remedy says so."""
    with serve(lambda _asked, _headers: Answer(401, "")) as url, pytest.raises(UseUnknown) as found:
        list_brokers(UsageSource.of(POLICY, connect(url)), START, END)
    assert found.value.remedy == (
        "The server does not accept the credentials. Check a test, which has no credentials."
    )


def test_what_is_too_much_is_divided() -> None:
    """A query that a server refuses as too large is divided, down to five minutes."""
    lengths: list[int] = []

    def respond(asked: Question, _headers: Mapping[str, str]) -> Answer:
        milliseconds = int(asked.query.rpartition("[")[2].partition("ms")[0])
        if "last_over_time" in asked.query:
            return ALICE
        if milliseconds <= 900_000:
            return NOTHING
        lengths.append(milliseconds)
        text = "query processing would load too many samples into memory in query execution"
        return Answer(422, _error("execution", text))

    with serve(respond) as url:
        source = UsageSource.of(POLICY, connect(url))
        assert [*read_rates(source, ["b"], "producer_byte_rate", TIME)] == []
        assert read_scrapes(source, ["b"], TIME).num_rows == 0
    assert sorted(lengths) == [1_800_000] * 4 + [3_600_000] * 2
    always = Answer(422, _error("execution", "too many samples"))
    with serve(lambda _asked, _headers: always) as url, pytest.raises(QueryTooLarge):
        read_scrapes(UsageSource.of(POLICY, connect(url)), ["b"], TIME)


def test_headers_are_those_of_the_connection() -> None:
    """The tenant and the credentials are sent with each query, to the path below the url."""
    seen: list[Mapping[str, str]] = []

    def respond(_asked: Question, headers: Mapping[str, str]) -> Answer:
        seen.append(headers)
        return NOTHING

    login = ("basic.username=u", "basic.password=p", "tenant=orders")
    with serve(respond) as url:
        list_brokers(UsageSource.of(POLICY, connect(f"{url}/prometheus/", *login)), START, END)
    (headers,) = seen
    assert headers["path"] == "/prometheus/api/v1/query"
    assert headers["X-Scope-OrgID"] == "orders"
    assert headers["Authorization"] == "Basic dTpw"


def test_a_server_that_is_away_or_dies_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that is away, or ends within a response, is tried again and then named."""
    monkeypatch.setattr(prometheus, "_ATTEMPTS", 2)
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"http://127.0.0.1:{server.getsockname()[1]}"
        calls: list[bytes] = []

        def die() -> None:
            for _ in range(2):
                client, _address = server.accept()
                calls.append(b"")
                while b"deny_partial" not in calls[-1]:  # the last field of a question
                    calls[-1] += client.recv(65_536)
                client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{")
                client.close()

        dying = Thread(target=die)
        dying.start()
        with pytest.raises(UseUnknown) as raised:
            list_brokers(UsageSource.of(POLICY, connect(address)), START, END)
        dying.join()
    assert len(calls) == 2
    assert raised.value.message.startswith(
        f"the Prometheus monitoring ({address}) did not complete a response: peer closed connection"
    )
    assert raised.value.remedy == prometheus.INCOMPLETE
    with pytest.raises(UseUnknown) as raised:
        list_brokers(UsageSource.of(POLICY, connect(address)), START, END)
    assert raised.value.message.endswith("Connection refused")


def test_a_certificate_that_is_not_trusted_has_its_own_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A failed TLS handshake points to the certificate authority, not to the network."""
    monkeypatch.setattr(prometheus, "_ATTEMPTS", 1)
    certificate, file = issue("prometheus"), tmp_path / "server.pem"
    file.write_bytes(pem(certificate) + key_pem(certificate))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"https://127.0.0.1:{server.getsockname()[1]}"

        def shake_hands() -> None:
            client, _address = server.accept()
            with client, suppress(OSError):
                context.wrap_socket(client, server_side=True)

        shaking = Thread(target=shake_hands)
        shaking.start()
        with pytest.raises(UseUnknown) as raised:
            list_brokers(UsageSource.of(POLICY, connect(address)), START, END)
        shaking.join()
    assert raised.value.message.startswith(
        f"the Prometheus monitoring ({address}) cannot be reached by TLS: "
        "[SSL: CERTIFICATE_VERIFY_FAILED]"
    )
    assert raised.value.remedy == prometheus.NO_TLS


@pytest.mark.parametrize("head", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n"])
def test_a_response_that_comes_by_single_bytes_is_given_up(
    monkeypatch: pytest.MonkeyPatch, head: bytes
) -> None:
    """A response has a deadline as a whole, and is not asked for again by smaller queries."""
    monkeypatch.setattr(prometheus, "_TOTAL", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"http://127.0.0.1:{server.getsockname()[1]}"

        def drip() -> None:
            client, _address = server.accept()
            with client, suppress(OSError):
                client.sendall(head)
                for _ in range(30):
                    client.sendall(b"H")
                    time.sleep(0.1)

        dripping = Thread(target=drip)
        dripping.start()
        with pytest.raises(UseUnknown) as raised:
            list_brokers(UsageSource.of(POLICY, connect(address)), START, END)
        dripping.join()
    assert raised.value.message == (
        f"the Prometheus monitoring ({address}) did not complete a response within 0.5 s"
    )


def test_a_clock_that_is_off_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """If this machine's clock is not the server's, nobody knows which minute was the last one."""
    date = format_datetime(datetime.now(UTC) + timedelta(minutes=2), usegmt=True)
    monkeypatch.setattr(BaseHTTPRequestHandler, "date_time_string", lambda _handler: date)
    with serve(lambda _asked, _headers: NOTHING) as url, pytest.raises(UseUnknown) as raised:
        list_brokers(UsageSource.of(POLICY, connect(url)), START, END)
    assert raised.value.message == (
        "the clock of this machine is 2 minutes behind that of the Prometheus monitoring "
        f"({url}), so which samples are of which time is unknown"
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("bearer.token=x", "FILE: url is missing."),
        ("url=kafka:9092", "FILE:1: url is not the address of a Prometheus."),
        ("url=https://u:p@host", "FILE:1: url is not the address of a Prometheus."),
        (
            "url=http://host:9090\nbearer.token=secret",
            "FILE:1: url must begin with https://, because a secret is sent there.",
        ),
        ("url=https://host\nbasic.password=p", "FILE:2: basic.password has no effect without"),
        (
            "bootstrap.servers=kafka:9092\nsasl.password=secret",
            "FILE:1: bootstrap.servers is not a setting of a connection to a Prometheus.",
        ),
        (
            "url=https://host\nbearer.token=${env:NOT_SET}",
            "FILE:2: bearer.token refers to the environment variable NOT_SET, which is not set.",
        ),
    ],
)
def test_an_invalid_connection_is_explained(
    text: str, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error names the line, never a secret; a connection to Kafka is not accepted."""
    file = tmp_path / "monitoring.properties"
    file.write_text(text, encoding="utf-8")
    monkeypatch.setenv("QUOTA_OPS_CONNECTIONS", str(tmp_path))
    with pytest.raises(InvalidInput) as raised:
        find_prometheus("monitoring")
    assert raised.value.message.replace(str(file), "FILE").startswith(expected)
    assert "secret" not in str(raised.value).replace("a secret", "")
