"""Bytes in a place, whole or not at all: what every file in the run store is made of.

A place is a path in a local folder, because the ledger needs a create that fails when the file
exists, which a hard link gives there.
"""

import errno
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from stat import S_ISDIR, S_ISREG
from typing import BinaryIO
from uuid import uuid4

from quota_ops.model.errors import InvalidInput

_log = logging.getLogger(__name__)
_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY


def open_file(place: Path) -> BinaryIO:
    """Open a plain file to read it; OSError also for a pipe or a device, which could block."""
    descriptor = os.open(place, _READ)
    mode = os.fstat(descriptor).st_mode
    if S_ISREG(mode):
        _log.debug("read %s", place)
        return os.fdopen(descriptor, "rb")
    os.close(descriptor)
    if S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(place))
    raise OSError(errno.EINVAL, "It is a pipe or a device, not a file", str(place))


def read(place: Path) -> bytes:
    """Return the bytes of a plain file; OSError as `open_file` raises it."""
    with open_file(place) as file:
        return file.read()


def write(place: Path, content: bytes) -> None:
    """Put bytes in a place, over what was there; a reader sees the old or the new, never a part.

    Raises InvalidInput when the place cannot be written (disk full, no permission).
    """
    with _draft(place, content) as draft:
        draft.replace(place)


def write_durably(place: Path, content: bytes) -> None:
    """Put bytes in a place as `write` does; a power cut leaves the old or the new there as well."""
    with _draft(place, content) as draft:
        _sync(draft)
        draft.replace(place)
        _sync(draft.parent)


def create(place: Path, content: bytes) -> bool:
    """Put bytes in a place where nothing was; False, and nothing done, when something is there.

    They are on the disk when this returns: not even a power cut takes them back. Raises
    InvalidInput as `write` does, also where the file system has no hard links.
    """
    with _draft(place, content) as draft:
        _sync(draft)
        try:
            place.hardlink_to(draft)
        except FileExistsError:
            # A network file system may link, lose its answer, and report the second try.
            if draft.stat().st_nlink == 1:
                return False
        _sync(draft.parent)
        return True


def list_names(folder: Path) -> list[str]:
    """The names in a folder, in no order; none where there is no folder.

    Raises InvalidInput where something else is in its place or it may not be listed: unreadable is
    not empty.
    """
    try:
        return [one.name for one in folder.iterdir()]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise InvalidInput(f"{folder} cannot be listed: {error.strerror}", remedy(error)) from error


def is_folder(place: Path) -> bool:
    """Whether a folder is in a place; InvalidInput when nobody may look."""
    return exists(place) and place.is_dir()


def exists(place: Path) -> bool:
    """Whether something is in a place; InvalidInput when nobody may look."""
    try:
        return place.exists()
    except OSError as error:
        raise InvalidInput(f"{place} cannot be read: {error.strerror}", remedy(error)) from error


def remedy(error: OSError) -> str | None:
    """Return what to do about a file of a run store that cannot be read or written.

    Never to use another store: it has no ledger, no holds and no decisions.
    """
    match error.errno:
        case errno.ENOSPC | errno.EDQUOT | errno.EFBIG:
            return (
                "Free some space there (quota-ops prune removes old runs), or move the run store."
            )
        case errno.EACCES | errno.EROFS:
            return "Let the user of this process read and write there."
        case errno.EEXIST | errno.ENOTDIR | errno.EISDIR | errno.ELOOP:
            return f"{error.filename2 or error.filename} is in the way: move it aside."
        case errno.EPERM | errno.ENOTSUP | errno.ENOSYS | errno.EINVAL:
            return "A run store needs hard links and fsync: move it to a file system that has them."
    return None


def size_of(path: Path) -> int:
    """The bytes of a file, or of all files below a folder; 0 of what is not there."""
    return sum(one.stat().st_size for one in (path, *path.rglob("*")) if one.is_file())


def make_folder(path: Path) -> None:
    """Make a folder, and each above it that is not there, that nobody else may read.

    Raises OSError where that cannot be.
    """
    if not path.is_dir():
        make_folder(path.parent)
        path.mkdir(mode=0o700, exist_ok=True)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def _draft(place: Path, content: bytes) -> Iterator[Path]:
    """The bytes in a file beside the place that is gone at the end, unless it became the place.

    From its first byte on nobody else may read it: runs say who may do how much.
    """
    draft = Path(f"{place}.{uuid4().hex}.part").absolute()
    try:
        make_folder(draft.parent)
        descriptor = os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        yield draft
        _log.debug("wrote %s, %d bytes", place, len(content))
    except OSError as error:
        why = os.strerror(error.errno) if error.errno else str(error)
        raise InvalidInput(f"{place} cannot be written: {why}", remedy(error)) from error
    finally:
        with suppress(OSError):
            draft.unlink()
