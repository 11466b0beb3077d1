"""A recorded Prometheus: responses of a real one, by what was asked.

They were recorded from a Prometheus 2.42 that scraped two real brokers every 5 s through the JMX
exporter 1.0.1, while real clients of them were throttled: see scenario.py. To record the queries of
the tests anew, run

    python -m tests.usage.scenario FOLDER
    RECORD_USAGE=FOLDER python -m pytest tests/usage
"""

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import NamedTuple
from urllib.parse import parse_qsl, urlencode
from urllib.request import urlopen

HERE = Path(__file__).parent
RECORDED = HERE.parent / "cases/usage/recorded.jsonl"
TIMES = HERE.parent / "cases/usage/times.json"
"""When what happened, in seconds since 1970."""


class Question(NamedTuple):
    """A query, and its time."""

    query: str
    time: str


class Answer(NamedTuple):
    """The status and the body of a response."""

    status: int
    body: str


Respond = Callable[[Question, Mapping[str, str]], Answer]
"""A function from a question and the headers of its request to the response."""


@contextmanager
def serve(respond: Respond) -> Iterator[str]:
    """Serve responses by HTTP, and yield the address."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            length = int(self.headers["Content-Length"])
            form = dict(parse_qsl(self.rfile.read(length).decode()))
            headers = {"path": self.path, **self.headers}
            answer = respond(Question(form["query"], form["time"]), headers)
            body = answer.body.encode()
            self.send_response(answer.status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self._headers_buffer.append(b"\r\n" + body)  # type: ignore[attr-defined]
            self.flush_headers()  # in one packet: two would wait for each other

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def read_recorded() -> dict[Question, Answer]:
    """Return what was recorded."""
    lines = RECORDED.read_text(encoding="utf-8").splitlines() if RECORDED.exists() else []
    read = [json.loads(line) for line in lines]
    return {Question(*line["asked"]): Answer(*line["answered"]) for line in read}


@contextmanager
def replay() -> Iterator[str]:
    """Serve what was recorded, and nothing else."""
    recorded = read_recorded()

    def respond(asked: Question, _headers: Mapping[str, str]) -> Answer:
        error = {"status": "error", "errorType": "bad_data", "error": f"not recorded: {asked}"}
        return recorded.get(asked, Answer(400, json.dumps(error)))

    with serve(respond) as url:
        yield url


@contextmanager
def record(url: str) -> Iterator[str]:
    """Pass questions on to a real Prometheus, and store them with its responses at the end."""
    recorded: dict[Question, Answer] = {}

    def respond(asked: Question, _headers: Mapping[str, str]) -> Answer:
        sent = f"{url}/api/v1/query?{urlencode(asked._asdict())}"
        with urlopen(sent, timeout=60) as response:  # noqa: S310 - loopback
            recorded[asked] = Answer(response.status, response.read().decode())
        return recorded[asked]

    with serve(respond) as served:
        yield served
    lines = [
        json.dumps({"asked": asked, "answered": recorded[asked]}, ensure_ascii=False)
        for asked in sorted(recorded)
    ]
    RECORDED.parent.mkdir(exist_ok=True)
    RECORDED.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
