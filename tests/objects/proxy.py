"""A proxy between quota-ops and an S3 server that loses or replaces responses."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

LOST = 0
"""The server gets the request, and its response is lost."""
CONFIRMED = 1
"""The server gets the request, and whatever it replies, the proxy replies 200."""


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
    removed: tuple[str, ...] = ()
    """Headers that no request to the server has, in lower case."""

    def begins_outage(self, path: str) -> bool:
        """Return whether a put is the first of the outage; from then on the outage lasts."""
        if self.outage_at is None or not path.endswith(f"/{self.outage_at[0]}"):
            return False
        self.outage_at = (self.outage_at[0], self.outage_at[1] - 1)
        return self.outage_at[1] == 0

    def next_fault(self) -> int | None:
        """Return the fault of the next put; None for none."""
        self.puts += 1
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

        def _forward(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            if self.command == "PUT" and faults.begins_outage(self.path):
                faults.refusal = (503, "SlowDown")
            if faults.refusal is not None:
                status, code = faults.refusal
                error = f"<Error><Code>{code}</Code><Message>AKIASECRET</Message></Error>".encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(error)))
                self.end_headers()
                self.wfile.write(error)
                return
            fault = faults.next_fault() if self.command == "PUT" else None
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
            self.send_response(200 if fault == CONFIRMED else response.status)
            if fault == CONFIRMED and response.status != HTTPStatus.OK:
                self.send_header("ETag", '"none"')
            for name, value in response.getheaders():
                if name.lower() not in {"transfer-encoding", "connection", "date", "server"}:
                    self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

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
