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
OWN = "github-actions[bot]"


@dataclass
class CommentsApi:
    """The running server: the comments and their authors by id, and the methods of requests.

    These are the accepted requests about comments.
    """

    address: str = ""
    comments: dict[int, str] = field(default_factory=dict)
    authors: dict[int, str] = field(default_factory=dict)
    methods: list[str] = field(default_factory=list)


@contextmanager
def serve_comments(  # noqa: C901 - the routes of two APIs
    *texts: str, author: str = "mallory"
) -> Iterator[CommentsApi]:
    """Serve a pull request with some comments of an author.

    The token's user is `OWN`, which GitHub shows such a token by GraphQL alone.
    """
    api = CommentsApi(
        comments=dict(enumerate(texts)), authors=dict.fromkeys(range(len(texts)), author)
    )

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
                listed = [
                    {"id": one, "body": text, "user": {"login": who}, "author": {"id": who}}
                    for one, text in api.comments.items()
                    for who in (api.authors[one],)
                ]
                self.reply(200, listed[100 * (page - 1) : 100 * page])
            elif place.path == "/graphql" and "viewer" in body["query"]:
                self.reply(200, {"data": {"viewer": {"login": OWN}}}, is_about_comments=False)
            elif place.path == "/user" and private:
                self.reply(200, {"id": OWN}, is_about_comments=False)
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
            api.authors.setdefault(number, OWN)
            self.reply(code, {"id": number, "html_url": f"https://code.example/comment-{number}"})

        def reply(self, code: int, value: Any, *, is_about_comments: bool = True) -> None:
            """Send JSON."""
            if code < 300 and is_about_comments:
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
