"""The folders of this machine as a store: each file is there whole or not at all.

A file is created by a hard link, which fails where a file is already.
"""

import errno
import fcntl
import logging
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from stat import S_ISDIR, S_ISREG
from typing import BinaryIO
from uuid import uuid4

from quota_ops.model.errors import InvalidInput
from quota_ops.store.place import Entry

_log = logging.getLogger(__name__)
_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY
_MACHINE = Path("/proc/sys/kernel/random/boot_id")


def find_key(path: str | os.PathLike[str]) -> str:
    """Return the key of a path: the same from the root, without the first slash, `.` and `..`."""
    named = Path(os.path.expanduser(path))  # noqa: PTH111 - pathlib's raises without such a user
    # A step up from a link is one from where it leads.
    whole = os.path.realpath(named) if ".." in named.parts else str(named.absolute())
    return whole.lstrip("/")


@dataclass(frozen=True, slots=True)
class LocalStore:
    """The files of this machine by path; a key is a path from the root, without its first slash.

    What each method promises is said in `quota_ops.store.place.Store`.
    """

    def uri(self, key: str) -> str:
        """Return the path."""
        return f"/{key}"

    def read(self, key: str) -> bytes:
        """Return the bytes of a plain file; OSError as `open` raises it."""
        with self.open(key) as file:
            return file.read()

    def open(self, key: str) -> BinaryIO:
        """Open a plain file to read it; OSError also for a pipe or a device, which could block."""
        descriptor = os.open(place := f"/{key}", _READ)
        mode = os.fstat(descriptor).st_mode
        if S_ISREG(mode):
            _log.debug("read %s", place)
            return os.fdopen(descriptor, "rb")
        os.close(descriptor)
        if S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), place)
        raise OSError(errno.EINVAL, "It is a pipe or a device, not a file", place)

    def create(self, key: str, content: bytes) -> bool:
        """Create a file where none is; InvalidInput also where there are no hard links."""
        place = Path(f"/{key}")
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

    def replace(self, key: str, content: bytes, *, durable: bool = False) -> None:
        """Put a file over what was there; InvalidInput on a full disk or without permission."""
        place = Path(f"/{key}")
        with _draft(place, content) as draft:
            if durable:
                _sync(draft)
            draft.replace(place)
            if durable:
                _sync(draft.parent)

    def exists(self, key: str) -> bool:
        """Whether a file or folder is there; InvalidInput when nobody may look."""
        try:
            return Path(f"/{key}").exists()
        except OSError as error:
            raise InvalidInput(f"/{key} cannot be read: {error.strerror}", remedy(error)) from error

    def list(self, key: str, after: str = "") -> Sequence[Entry]:
        """List a folder; nothing where there is none, InvalidInput where it is something else."""
        try:
            with os.scandir(f"/{key}") as entries:
                return sorted(_entry(one) for one in entries if one.name > after)
        except FileNotFoundError:
            return []
        except OSError as error:
            why = f"/{key} cannot be listed: {error.strerror}"
            raise InvalidInput(why, remedy(error)) from error

    def size(self, key: str) -> int:
        """Return the bytes of a file, or of all files below a folder."""
        path = Path(f"/{key}")
        return sum(one.stat().st_size for one in (path, *path.rglob("*")) if one.is_file())

    def delete(self, key: str) -> None:
        """Remove a file, unless it is gone already."""
        Path(f"/{key}").unlink(missing_ok=True)

    def delete_folder(self, key: str) -> None:
        """Remove an empty folder."""
        Path(f"/{key}").rmdir()

    def prepare(self, key: str) -> None:
        """Make a folder, and each above it that is not there, that nobody else may read."""
        try:
            _make_folder(Path(f"/{key}"))
        except OSError as error:
            why = f"/{key} cannot be written: {error.strerror}"
            raise InvalidInput(why, remedy(error)) from error

    @contextmanager
    def lock(self, key: str) -> Iterator[None]:
        """Hold a lock on a file, which the kernel releases whatever ends the process."""
        with self.open(key) as file:
            with suppress(OSError):  # a file system without locks
                fcntl.flock(file, fcntl.LOCK_SH)
            yield

    def is_locked(self, key: str) -> bool | None:
        """Whether a process that this kernel sees holds the lock; None without file or locks."""
        with suppress(OSError), self.open(key) as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
            return False
        return None

    def machine(self) -> str | None:
        """Return what no other running machine has; None where the system does not tell."""
        with suppress(OSError):
            return _MACHINE.read_text().strip()
        return None

    def resolve(self, key: str) -> str:
        """Return the path without links."""
        return os.path.realpath(f"/{key}").lstrip("/")

    def find_checkout(self, key: str) -> str | None:
        """Return the first folder from here up, links resolved, with a `.git`."""
        real = self.resolve(key)
        while not self.exists(f"{real}/.git"):
            if not real:
                return None
            real = real.rpartition("/")[0]
        return f"/{real}"


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


def _entry(one: "os.DirEntry[str]") -> Entry:
    is_own = one.is_file(follow_symlinks=False) or one.is_dir(follow_symlinks=False)
    return Entry(one.name, one.is_dir(), is_own)


def _make_folder(path: Path) -> None:
    if not path.is_dir():
        _make_folder(path.parent)
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
    draft = Path(f"{place}.{uuid4().hex}.part")
    try:
        _make_folder(draft.parent)
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
