"""Bytes in a place, whole or not at all: what every file in the run store is made of.

A place is a path or an fsspec URL. Today only local folders are promised, because the ledger
needs a create that fails when the file exists, which `link` gives there.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from uuid import uuid4

from fsspec import AbstractFileSystem
from fsspec.core import url_to_fs

from quota_ops.model.errors import InvalidInput


def read(place: str) -> bytes:
    """The bytes of a place; FileNotFoundError when there is nothing."""
    fs, path = url_to_fs(place)
    return bytes(fs.cat_file(path))


def write(place: str, content: bytes) -> None:
    """Put bytes in a place, over what was there; a reader sees the old or the new, never a part.

    Raises InvalidInput when the place cannot be written (disk full, no permission).
    """
    with _draft(place, content) as (fs, draft, path):
        fs.mv(draft, path)


def create(place: str, content: bytes) -> bool:
    """Put bytes in a place where nothing was; False, and nothing done, when something is there.

    Raises InvalidInput as `write` does, also where the file system has no hard links.
    """
    with _draft(place, content) as (fs, draft, path):
        try:
            fs.link(draft, path)
        except FileExistsError:
            return False
        return True


@contextmanager
def _draft(place: str, content: bytes) -> Iterator[tuple[AbstractFileSystem, str, str]]:
    """The bytes in a file beside the place that is gone at the end, unless it became the place."""
    fs, path = url_to_fs(place)
    draft = f"{path}.{uuid4().hex}.part"
    try:
        fs.makedirs(fs._parent(path), exist_ok=True)  # noqa: SLF001 - fsspec documents it for callers
        fs.pipe_file(draft, content)
        yield fs, draft, path
    except OSError as error:
        raise InvalidInput(
            f"{place} cannot be written: {error.strerror or error}",
            "Make room, or give another --run-store.",
        ) from error
    finally:
        if fs.exists(draft):
            fs.rm_file(draft)
