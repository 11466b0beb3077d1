"""The connection file that lets a cluster's name resolve to a sandbox broker."""

import os
from pathlib import Path

from quota_ops.kafka.connection import connections_folder
from quota_ops.model.errors import InvalidInput

_FIRST_LINE = "# Written by quota-ops sandbox start; quota-ops sandbox stop removes it.\n"


def connection_file(name: str) -> Path:
    """Return the file in which `find_connection` looks a name up."""
    return connections_folder() / f"{name}.properties"


def check_replaceable(file: Path) -> None:
    """Raise InvalidInput when the file is there and no sandbox wrote it."""
    if file.exists() and not _is_sandbox_file(file):
        raise InvalidInput(
            f"{file} is a connection of your own; the sandbox does not replace it.",
            "Rename it, or set QUOTA_OPS_CONNECTIONS to another folder.",
        )


def write_connection(file: Path, bootstrap: str) -> None:
    """Write a connection to a sandbox broker; raises InvalidInput rather than replace another's."""
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
