"""Folders of this machine as a store: each file exists completely or not at all.

A file is created by a hard link, which fails if the file exists.
"""

import errno
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from stat import S_ISDIR, S_ISREG
from typing import BinaryIO, Self
from uuid import uuid4

from quota_ops.model.errors import Denied, InvalidInput
from quota_ops.store.places.place import Entry, Leaf, Place

_log = logging.getLogger(__name__)
_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY


def find_key(path: str | os.PathLike[str]) -> str:
    """Return the key of a path: the absolute path without its first slash, `.` and `..`."""
    named = Path(os.path.expanduser(path))  # noqa: PTH111 - pathlib's raises without such a user
    # `..` after a link is the parent of the link's target.
    whole = os.path.realpath(named) if ".." in named.parts else str(named.absolute())
    return whole.lstrip("/")


@dataclass(frozen=True, slots=True)
class LocalPlace(Place):
    """A file or folder of this machine; its key is an absolute path without the first slash."""

    @property
    def uri(self) -> str:
        """The path."""
        return f"/{self.key}"

    @property
    def _path(self) -> Path:
        return Path(self.uri)

    def read(self) -> bytes:
        """Return the bytes of a regular file. Raises OSError like `open` raises it."""
        with self.open() as file:
            return file.read()

    def open(self) -> BinaryIO:
        """Open a regular file. Raises OSError also for a pipe or a device, which could block."""
        descriptor = os.open(place := self.uri, _READ)
        mode = os.fstat(descriptor).st_mode
        if S_ISREG(mode):
            _log.debug("read %s", place)
            return os.fdopen(descriptor, "rb")
        os.close(descriptor)
        if S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), place)
        raise OSError(errno.EINVAL, "It is a pipe or a device, not a file", place)

    def create(self, content: bytes) -> bool:
        """Create a file. Raises InvalidInput also if the file system has no hard links."""
        place = self._path
        with _draft(place, content) as draft:
            _sync(draft)
            try:
                place.hardlink_to(draft)
            except FileExistsError:
                # A network file system may create the link, lose the response and retry.
                if draft.stat().st_nlink == 1:
                    return False
            _sync(draft.parent)
            return True

    def replace(self, content: bytes, *, durable: bool = False) -> None:
        """Create or overwrite a file. Raises InvalidInput on a full disk or without permission."""
        place = self._path
        with _draft(place, content) as draft:
            if durable:
                _sync(draft)
            draft.replace(place)
            if durable:
                _sync(draft.parent)

    def exists(self) -> bool:
        """Return whether a file or folder exists.

        Raises InvalidInput without permission to look.
        """
        with _explaining(self, "read"):
            return self._path.exists()

    def modified(self) -> datetime:
        """Return a file's time, which a file server sets by its own clock."""
        return datetime.fromtimestamp(self._path.stat().st_mtime, UTC)

    def entries(self, after: str = "") -> tuple[Entry, ...]:
        """List a folder; empty if it does not exist, InvalidInput if it is not a folder."""
        found: list[Entry] = []
        missing = suppress(FileNotFoundError)
        with _explaining(self, "listed"), missing, os.scandir(self.uri) as entries:
            found += (_entry(entry) for entry in entries if entry.name > after)
        return tuple(sorted(found))

    def walk(self) -> tuple[Leaf, ...]:
        """List the files below a folder.

        Raises InvalidInput if one of its folders cannot be listed.
        """
        found: list[Leaf] = []
        with _explaining(self, "listed"), suppress(FileNotFoundError):
            found += _leaves(self.uri, "")
        return tuple(sorted(found))

    def delete(self) -> None:
        """Delete a file; do nothing if it does not exist."""
        self._path.unlink(missing_ok=True)

    def delete_folder(self) -> None:
        """Delete an empty folder."""
        self._path.rmdir()

    def prepare(self) -> None:
        """Create a folder and its missing parents, readable by their owner alone."""
        with _explaining(self, "written"):
            _make_folder(self._path)
        self.watch()

    def watch(self) -> None:
        """Notice from now on that the folder of a run store vanishes, if it exists now."""
        path = self._path
        (_watched.add if path.is_dir() else _watched.discard)(path)

    def resolved(self) -> Self:
        """Return the place with every symbolic link in its path followed."""
        return self.at(os.path.realpath(self.uri).lstrip("/"))

    def find_checkout(self) -> str | None:
        """Return the nearest folder upward, links resolved, that has a `.git`."""
        folder = self.resolved()
        while not (folder / ".git").exists():
            if not folder.key:
                return None
            folder = folder.parent
        return folder.uri


@contextmanager
def _explaining(place: Place | Path, how: str) -> Iterator[None]:
    """Raise InvalidInput with the remedy if a place cannot be read, listed or written."""
    try:
        yield
    except OSError as error:
        why = os.strerror(error.errno) if error.errno else str(error)
        kind = Denied if error.errno in _DENIED else InvalidInput
        raise kind(f"{place} cannot be {how}: {why}", remedy(error)) from error


def _entry(entry: "os.DirEntry[str]") -> Entry:
    is_own = entry.is_file(follow_symlinks=False) or entry.is_dir(follow_symlinks=False)
    return Entry(entry.name, entry.is_dir(), is_own)


def _leaves(folder: str, above: str) -> Iterator[Leaf]:
    with os.scandir(folder) as entries:
        found = list(entries)
    for entry in found:
        path = f"{above}{entry.name}"
        with suppress(FileNotFoundError):  # another process has just deleted it
            if entry.is_dir(follow_symlinks=False):
                yield from list(_leaves(entry.path, f"{path}/")) or [Leaf(path, 0, True, True)]
            else:
                size = entry.stat(follow_symlinks=False).st_size
                yield Leaf(path, size, False, entry.is_file(follow_symlinks=False))


_watched: set[Path] = set()
"""The folders of run stores that this process has seen."""


def _refuse_moved(place: Path) -> None:
    """Raise InvalidInput if the run store of a file was moved: a new folder would be half of it."""
    above = _watched.intersection(place.parents)
    if moved := next((folder for folder in above if not folder.exists()), None):
        raise InvalidInput(
            f"{place} cannot be written: the run store {moved} was moved or deleted meanwhile",
            "Nothing was created there. Set --run-store or QUOTA_OPS_RUN_STORE to its new place; "
            "the next run there settles what this one wrote.",
        )


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
    """Write the bytes to a file beside the place, which the block links or renames to the place.

    Only its owner can read it from its first byte on: runs record who has which quota.
    """
    draft = Path(f"{place}.{uuid4().hex}.part")
    try:
        with _explaining(place, "written"):
            _refuse_moved(place)
            _make_folder(draft.parent)
            descriptor = os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
            yield draft
            _log.debug("wrote %s, %d bytes", place, len(content))
    finally:
        with suppress(OSError):
            draft.unlink()


_DENIED = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})
_NOTE = "moved to "
"""The beginning of the file that a person leaves in the place of a run store that was moved."""
_LONGEST_NOTE = 300


def remedy(error: OSError) -> str | None:
    """Return the remedy for a file of a run store that cannot be read or written.

    It is never to use another store, which has no ledger, no holds and no decisions, unless a file
    in the place of this one names it.
    """
    match error.errno:
        case errno.ENOSPC | errno.EDQUOT | errno.EFBIG:
            return (
                "Free some space there (quota-ops prune --keep 1h removes the runs before the last "
                "hour), or move the run store."
            )
        case errno.EROFS:
            return "Make its file system writable again, or move the run store."
        case errno.EACCES:
            return "Give the user of this process permission to read and write there."
        case errno.EEXIST | errno.ENOTDIR | errno.EISDIR | errno.ELOOP:
            return _explain_obstacle(Path(error.filename2 or error.filename))
        case errno.EPERM | errno.ENOTSUP | errno.ENOSYS | errno.EINVAL:
            return (
                "A run store needs hard links and fsync: move it to a file system with both. If it "
                "has been made immutable (lsattr), undo that."
            )
    return None


def _explain_obstacle(path: Path) -> str:
    """Return which file or folder is in the way of a path, with the note in it if it has one.

    No other text of a file is shown, because it might be a secret.
    """
    found = next((ancestor for ancestor in (path, *path.parents) if ancestor.is_file()), path)
    with suppress(OSError, ValueError), found.open(encoding="utf-8") as file:
        note = file.read(_LONGEST_NOTE).strip()
        if note.startswith(_NOTE) and note.isprintable():
            named = "Set --run-store or QUOTA_OPS_RUN_STORE to the new place."
            return f"The file {found} states where the run store is: {note}\n  {named}"
    return f"{found} is in the way: move it elsewhere, or correct the path."
