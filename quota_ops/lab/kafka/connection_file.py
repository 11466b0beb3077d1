"""The connection file by which a cluster's name resolves to the sandbox broker."""

import os
from pathlib import Path

from quota_ops.kafka.connection import connections_folder
from quota_ops.model.errors import InvalidInput

_FIRST_LINE = "# Written by quota-ops sandbox start; quota-ops sandbox stop removes it.\n"


def connection_file(name: str) -> Path:
    """Return the file in which `find_connection` looks up a name."""
    return connections_folder() / f"{name}.properties"


def check_replaceable(file: Path) -> None:
    """Raise InvalidInput when the file exists and no sandbox wrote it."""
    if file.exists() and not _is_sandbox_file(file):
        raise InvalidInput(
            f"{file} is your own connection; the sandbox does not replace it.",
            "Rename it, or set QUOTA_OPS_CONNECTIONS to another folder.",
        )


def write_connection(file: Path, bootstrap: str) -> None:
    """Write a connection to a sandbox broker; InvalidInput rather than replace the user's."""
    check_replaceable(file)
    file.parent.mkdir(parents=True, exist_ok=True)
    written = file.with_name(f".{file.name}.{os.getpid()}")
    written.write_text(f"{_FIRST_LINE}bootstrap.servers={bootstrap}\nsecurity.protocol=PLAINTEXT\n")
    written.replace(file)


def remove_connection(file: Path) -> None:
    """Remove a connection file that a sandbox wrote; leave any other."""
    if _is_sandbox_file(file):
        file.unlink()


def _is_sandbox_file(file: Path) -> bool:
    return file.is_file() and file.read_bytes().startswith(_FIRST_LINE.encode())
