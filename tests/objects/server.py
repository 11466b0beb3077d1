"""The S3 server of the tests, with identities that may do different things."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from quota_ops.lab import s3_server

ACTIONS = {
    "writer": ["Admin", "Read", "Write", "List"],
    "reader": ["Read", "List"],
    "anonymous": ["Admin", "Read", "Write", "List"],
}
"""What each identity may do; a request without a signature is of `anonymous`."""


@dataclass(frozen=True, slots=True)
class S3Server:
    """A running server."""

    server: s3_server.S3Server

    @property
    def endpoint(self) -> str:
        """Its address."""
        return self.server.endpoint

    def environment(self, identity: str = "writer") -> Mapping[str, str]:
        """Return the variables that a client needs; instance credentials are out of reach."""
        metadata = {"AWS_METADATA_ENDPOINT": "http://127.0.0.1:9"}
        return {**self.server.environment(identity), **metadata}

    def create_bucket(self, name: str) -> None:
        """Create a bucket."""
        self.server.create_bucket(name)


@contextmanager
def start_s3(folder: Path) -> Iterator[S3Server]:
    """Start a server with the identities of `ACTIONS`, and stop it at the end."""
    server = s3_server.start_s3(folder, ACTIONS)
    try:
        yield S3Server(server)
    finally:
        server.stop(grace=0.0)
