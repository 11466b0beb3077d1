"""A proxy between quota-ops and an S3 server that loses or replaces responses."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from email.utils import format_datetime, parsedate_to_datetime
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import NamedTuple

LOST = 0
"""The server gets the request, and its response is lost."""
CONFIRMED = 1
"""The server gets the request, and whatever it replies, the proxy replies 200."""


_OVERLOADED = (503, "SlowDown")


class Response(NamedTuple):
    """The headers and the content of a response."""

    headers: list[tuple[str, str]]
    content: bytes


@dataclass
class Faults:
    """The faults of the next puts: LOST, CONFIRMED, or a status without a request to the server."""

    address: str = ""
    plan: list[int] = field(default_factory=list)
    lose_every: int = 0
    """The responses of each so manieth put are lost; 0 loses none of them."""
    puts: int = 0
    refusal: tuple[int, str] | None = None
    """The status and the error code of S3 with which every request is refused."""
    outage_at: tuple[str, int] | None = None
    """A name and a number: from this put of an object with the name on, the store is overloaded."""
    outage_after: int | None = None
    """From this request on, of those after `requests` was set to 0, the store is overloaded."""
    requests: int = 0
    unread_at: str | None = None
    """The store is overloaded when it is asked for an object with this end of its path."""
    lost_at: str | None = None
    """A put of an object with this end of its path is confirmed, and lost."""
    cut_at: str | None = None
    """Responses with an object whose path has this text are half as long as they should be."""
    cut_each: int = 2
    """Each so manieth of them is cut."""
    is_cut_whole: bool = False
    """Whether a cut response states the length that it has, and not that of the object."""
    gets: int = 0
    slowness: float = 0.0
    """The seconds that each list of objects takes."""
    clock_lead: timedelta = timedelta()
    """How far the clock of the store is ahead."""
    removed: tuple[str, ...] = ()
    """Headers that no request to the server has, in lower case."""

    def begins_outage(self, path: str) -> bool:
        """Return whether a put is the first of the outage; from then on the outage lasts."""
        if self.outage_at is None or not path.endswith(f"/{self.outage_at[0]}"):
            return False
        self.outage_at = (self.outage_at[0], self.outage_at[1] - 1)
        return self.outage_at[1] == 0

    def alter(
        self, command: str, path: str, headers: list[tuple[str, str]], content: bytes
    ) -> "Response":
        """Return what the proxy sends of a response: late, cut, or with another time."""
        length = len(content)
        if command == "GET" and "list-type" in path:
            time.sleep(self.slowness)
        elif command == "GET" and self.cut_at is not None and self.cut_at in path:
            self.gets += 1
            if self.gets % self.cut_each == 0:
                content = content[: length // 2]
        sent = []
        for name, value in headers:
            if name.lower() == "content-length" and self.is_cut_whole and command == "GET":
                sent.append((name, str(len(content))))
            elif name.lower() == "last-modified":
                moved = parsedate_to_datetime(value) + self.clock_lead
                sent.append((name, format_datetime(moved, usegmt=True)))
            elif name.lower() not in {"transfer-encoding", "connection", "date", "server"}:
                sent.append((name, value))
        return Response(sent, content)

    def find_refusal(self, command: str, path: str) -> tuple[int, str] | None:
        """Return the status and the error code with which a request is refused, if it is."""
        self.requests += 1
        is_unread = self.unread_at is not None and path.endswith(self.unread_at)
        if self.requests == self.outage_after or (command == "PUT" and self.begins_outage(path)):
            self.refusal = _OVERLOADED
        return _OVERLOADED if is_unread and command == "GET" else self.refusal

    def next_fault(self, path: str) -> int | None:
        """Return the fault of the next put; None for none."""
        self.puts += 1
        if self.lost_at is not None and path.endswith(self.lost_at):
            return 200
        if self.lose_every and self.puts % self.lose_every == 0:
            return LOST
        return self.plan.pop(0) if self.plan else None


@contextmanager
def start_proxy(endpoint: str) -> Iterator[Faults]:
    """Start a proxy to an endpoint, and stop it at the end."""
    faults = Faults()

    class Handler(BaseHTTPRequestHandler):
        """Forwards each request, and applies the next fault to a put."""

        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True  # a body would wait 40 ms for the receipt of its headers

        def _forward(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            refusal = faults.find_refusal(self.command, self.path)
            if refusal is not None:
                status, code = refusal
                error = f"<Error><Code>{code}</Code><Message>AKIASECRET</Message></Error>".encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(error)))
                self.end_headers()
                self.wfile.write(b"" if self.command == "HEAD" else error)
                return
            fault = faults.next_fault(self.path) if self.command == "PUT" else None
            if fault and fault != CONFIRMED:
                self.send_response(fault)
                self.send_header("Content-Length", "0")
                self.send_header("ETag", '"none"')
                self.end_headers()
                return
            connection = HTTPConnection(endpoint.removeprefix("http://"), timeout=30)
            headers = {
                name: value
                for name, value in self.headers.items()
                if name.lower() not in faults.removed
            }
            connection.request(self.command, self.path, body, headers)
            response = connection.getresponse()
            content = response.read()
            connection.close()
            if fault == LOST:
                self.close_connection = True
                return
            status = 200 if fault == CONFIRMED else response.status
            self.send_response(status)
            if status != response.status:
                self.send_header("ETag", '"none"')
            sent = faults.alter(self.command, self.path, response.getheaders(), content)
            self.close_connection = len(sent.content) < len(content)
            for name, value in sent.headers:
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(sent.content)

        do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = _forward  # noqa: N815 - named by the library

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        faults.address = f"http://127.0.0.1:{server.server_port}"
        thread = Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield faults
        finally:
            server.shutdown()
            thread.join()
