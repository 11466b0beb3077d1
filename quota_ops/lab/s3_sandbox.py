"""The S3 server of the sandbox, with a bucket for a run store."""

from pathlib import Path

from quota_ops.lab.kafka.sandbox import find_sandbox
from quota_ops.lab.s3_server import S3Server, read_s3, start_s3
from quota_ops.store.places.run_store import ENVIRONMENT

_BUCKET, _IDENTITY = "runs", "sandbox"


def start_s3_sandbox() -> S3Server:
    """Start the server in the background, unless it is running; errors as `start_s3`."""
    running = find_s3_sandbox()
    if running is not None:
        return running
    actions = {_IDENTITY: ["Admin", "Read", "Write", "List"]}
    server = start_s3(_folder(), actions, detached=True)
    server.create_bucket(_BUCKET)
    return server


def find_s3_sandbox() -> S3Server | None:
    """Return the running server; None if it does not run."""
    found = read_s3(_folder())
    return found if found is not None and found.process.alive else None


def stop_s3_sandbox() -> bool:
    """Stop the server, which keeps its data; return whether it was running."""
    found = find_s3_sandbox()
    if found is not None:
        found.stop()
    return found is not None


def list_variables(server: S3Server) -> dict[str, str]:
    """Return the variables with which every command uses a run store on the server."""
    return {ENVIRONMENT: f"s3://{_BUCKET}/quota-ops", **server.environment(_IDENTITY)}


def _folder() -> Path:
    return find_sandbox().home / "s3"
