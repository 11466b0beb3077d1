"""The comments of one pull request, over HTTP as GitHub's and GitLab's APIs have them.

No test may write to the real ones. Addresses, methods, headers and status codes follow
https://docs.github.com/rest/issues/comments and https://docs.gitlab.com/api/notes.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, urlsplit

GITHUB_COMMENTS = "/repos/o/r/issues/7/comments"
GITHUB_COMMENT = "/repos/o/r/issues/comments/"
GITLAB_NOTES = "/projects/3/merge_requests/7/notes"
TOKEN = "a-token"


@dataclass
class CommentsApi:
    """The running server: the comments by id, and the methods of accepted requests."""

    address: str = ""
    comments: dict[int, str] = field(default_factory=dict)
    methods: list[str] = field(default_factory=list)


@contextmanager
def serve_comments(*others: str) -> Iterator[CommentsApi]:
    """Serve a pull request with some comments of other people."""
    api = CommentsApi(comments=dict(enumerate(others)))

    class Handler(BaseHTTPRequestHandler):
        """Answers the requests of one client."""

        def answer(self) -> None:
            """List, create or replace comments; 403 without the token, 404 for other addresses."""
            place = urlsplit(self.path)
            size = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(size) or b"{}")
            bearer, private = self.headers["Authorization"], self.headers["PRIVATE-TOKEN"]
            is_listed = place.path in {GITHUB_COMMENTS, GITLAB_NOTES}
            known = place.path.removeprefix(GITHUB_COMMENT).removeprefix(f"{GITLAB_NOTES}/")
            if f"Bearer {TOKEN}" != bearer and private != TOKEN:
                self.reply(403, {})
            elif self.command == "GET" and is_listed:
                page = int(parse_qs(place.query)["page"][0])
                listed = [{"id": one, "body": text} for one, text in api.comments.items()]
                self.reply(200, listed[100 * (page - 1) : 100 * page])
            elif self.command == "POST" and is_listed:
                self.keep(201, len(api.comments), body["body"])
            elif self.command == ("PATCH" if bearer else "PUT") and known.isdigit():
                self.keep(200, int(known), body["body"])
            else:
                self.reply(404, {})

        do_GET = do_POST = do_PATCH = do_PUT = answer  # noqa: N815 - as http.server calls them

        def keep(self, code: int, number: int, text: str) -> None:
            """Store a comment."""
            api.comments[number] = text
            self.reply(code, {"id": number, "html_url": f"https://code.example/comment-{number}"})

        def reply(self, code: int, value: Any) -> None:
            """Send JSON."""
            if code < 300:
                api.methods.append(self.command)
            content = json.dumps(value).encode()
            self.send_response(code)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_message: Any) -> None:
            """Print nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        api.address = f"http://127.0.0.1:{server.server_port}"
        Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        yield api
        server.shutdown()
