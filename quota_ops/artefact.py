"""Bytes in a place, whole or not at all: what every file in the run store is made of.

A place is a path or a URL of one that Arrow's file systems know. Only local folders are written,
because the ledger needs a create that fails when the file exists, which `os.link` gives there.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4

from pyarrow.fs import FileSystem

from quota_ops.model.errors import InvalidInput


def read(place: str) -> bytes:
    """The bytes of a place; FileNotFoundError when there is nothing."""
    fs, path = _locate(place)
    with fs.open_input_file(path) as file:
        return bytes(file.readall())


def write(place: str, content: bytes) -> None:
    """Put bytes in a place, over what was there; a reader sees the old or the new, never a part.

    Raises InvalidInput when the place cannot be written (disk full, no permission).
    """
    with _draft(place, content) as (draft, path):
        os.replace(draft, path)  # noqa: PTH105 - as os.link below


def create(place: str, content: bytes) -> bool:
    """Put bytes in a place where nothing was; False, and nothing done, when something is there.

    They are on the disk when this returns: not even a power cut takes them back. Raises
    InvalidInput as `write` does, also where the file system has no hard links.
    """
    with _draft(place, content) as (draft, path):
        _sync(draft)
        try:
            os.link(draft, path)
        except FileExistsError:
            return False
        _sync(str(Path(path).parent))
        return True


def make_folder(path: Path) -> None:
    """Make a folder, and each above it that is not there, that nobody else may read.

    Raises OSError where that cannot be.
    """
    for folder in (*reversed(path.parents), path):
        folder.mkdir(mode=0o700, exist_ok=True)


def _sync(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def _draft(place: str, content: bytes) -> Iterator[tuple[str, str]]:
    """The bytes in a file beside the place that is gone at the end, unless it became the place.

    From its first byte on nobody else may read it: runs say who may do how much.
    """
    _, path = _locate(place)
    draft = f"{path}.{uuid4().hex}.part"
    try:
        make_folder(Path(path).parent)
        descriptor = os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        yield draft, path
    except OSError as error:
        why = os.strerror(error.errno) if error.errno else str(error)
        raise InvalidInput(
            f"{place} cannot be written: {why}", "Make room, or give another --run-store."
        ) from error
    finally:
        with suppress(OSError):
            Path(draft).unlink()


def _locate(place: str) -> tuple[FileSystem, str]:
    found: tuple[FileSystem, str] = FileSystem.from_uri(
        place if "://" in place else str(Path(place).absolute())
    )
    return found
