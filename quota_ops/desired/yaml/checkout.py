"""The one place where folders and files of desired state are opened: no link is followed.

A commit can make any path in its checkout a link to any file of the machine that reads it.
"""

import errno
import logging
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from enum import Enum, auto
from itertools import islice
from operator import attrgetter
from pathlib import Path, PurePosixPath
from stat import S_ISDIR, S_ISLNK, S_ISREG
from typing import NamedTuple

from msgspec import Struct

from quota_ops.model.errors import find_limit
from quota_ops.model.text import counted

_log = logging.getLogger(__name__)
_GIT = ".git"
_GIT_FILE_BYTES = 4096
_LINKED_WORKTREES = "worktrees"
# A folder that is only passed through need not be listed, so it need not be readable.
_PASS = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY
# A pipe would block until somebody writes; a terminal would become that of this process.
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY
MAX_ENTRIES = 100_000


class Kind(Enum):
    """The kind of an entry of a folder; links are not followed."""

    FILE = auto()
    FOLDER = auto()
    LINK = auto()
    OTHER = auto()


class Entry(NamedTuple):
    """A name in a folder, and its kind."""

    name: str
    kind: Kind


class Folder(Struct, frozen=True):
    """An open folder of desired state; `path` is as a person typed it.

    Names are paths below it, with slashes. Each component is opened from the one before, so that
    one that becomes a link meanwhile is refused too. All methods raise OSError: LinkError for a
    link, NotAFileError for anything else that is not a regular file.
    """

    path: Path
    descriptor: int

    def entries(self, name: str = "") -> list[Entry]:
        """List the entries of a folder by name."""
        with self.enter(PurePosixPath(name).parts) as descriptor:
            listed = os.open(".", os.O_RDONLY | os.O_DIRECTORY, dir_fd=descriptor)
            try:
                with os.scandir(listed) as found:
                    entries = [
                        Entry(entry.name, _kind(entry)) for entry in islice(found, MAX_ENTRIES)
                    ]
                    if next(found, None) is not None:
                        raise TooManyError(self.path / name, MAX_ENTRIES)
                    return sorted(entries, key=attrgetter("name"))
            finally:
                os.close(listed)

    def has(self, name: str) -> bool:
        """Whether anything has this name, even a broken link."""
        *folders, last = PurePosixPath(name).parts
        try:
            with self.enter(folders) as descriptor:
                os.stat(last, dir_fd=descriptor, follow_symlinks=False)
        except (FileNotFoundError, NotADirectoryError, LinkError):
            return False
        return True

    def read(self, name: str, most: int) -> bytes:
        """Read a regular file. Raises TooLargeError, before reading, for more than `most` bytes."""
        *folders, last = PurePosixPath(name).parts
        path = self.path / name
        with self.enter(folders) as descriptor:
            require_plain(os.stat(last, dir_fd=descriptor, follow_symlinks=False), path)
            try:
                opened = os.open(last, _READ, dir_fd=descriptor)
            except OSError as error:
                raise LinkError(path) if error.errno == errno.ELOOP else error from None
        with os.fdopen(opened, "rb") as file:
            found = os.fstat(opened)
            require_plain(found, path)  # it may have become another since
            _log.debug("read %s, %d bytes", path, found.st_size)
            if found.st_size > most:
                raise TooLargeError(path, found.st_size)
            return file.read(most)

    @contextmanager
    def enter(self, names: Sequence[str]) -> Iterator[int]:
        """Open a folder below this one, and return its descriptor."""
        with ExitStack() as folders:
            descriptor, path = self.descriptor, self.path
            for name in names:
                path /= name
                descriptor = _pass_into(descriptor, name, path)
                folders.callback(os.close, descriptor)
            yield descriptor


@contextmanager
def open_folder(path: Path, own: int) -> Iterator[Folder]:
    """Open a folder of desired state that no commit can redirect.

    Below the top of a Git checkout no component may be a link; above it components may be links,
    for example those of git-sync. Outside a checkout, the last `own` components may not be links,
    nor any component of a relative path. `..` is resolved before the path is opened. Raises
    OSError, LinkError for a link.
    """
    root, *names = Path(os.path.abspath(path)).parts  # noqa: PTH100 - Path.absolute keeps ".."
    typed = () if path.is_absolute() else Path(os.path.normpath(path)).parts
    below = len(typed) - typed.count("..")
    descriptor, here = os.open(root, _PASS), Path(root)
    repository = link = None
    try:
        for left, name in zip(range(len(names), 0, -1), names, strict=True):
            repository = _repository(descriptor) or repository
            here /= name
            if repository is None and left > own:
                if left <= below and here.is_symlink():
                    link = link or here  # fine above a checkout, which has a `.git`
                inner = os.open(name, _PASS, dir_fd=descriptor)
            else:
                inner = _pass_below_top(descriptor, name, here, repository)
            os.close(descriptor)
            descriptor = inner
        _refuse_unless_above(link, repository)
        yield Folder(path, descriptor)
    except LinkError as error:
        if error.filename in {str(here), str(link)} and not path.is_absolute():
            error.filename = os.path.relpath(error.filename)
        raise
    finally:
        os.close(descriptor)


def _refuse_unless_above(link: Path | None, repository: os.stat_result | None) -> None:
    if link is not None and repository is None:
        raise LinkError(link, is_above=True)


def _pass_below_top(
    descriptor: int, name: str, path: Path, repository: os.stat_result | None
) -> int:
    """Enter a folder that a commit may control; follow only links to a worktree of the repository.

    git-sync creates such links: its root is a repository, and the link is not part of a commit.
    """
    try:
        return _pass_into(descriptor, name, path)
    except LinkError:
        inner = None if repository is None else _open_worktree(descriptor, name, repository)
        if inner is None:
            raise LinkError(path, is_above=True) from None
        return inner


def _pass_into(descriptor: int, name: str, path: Path) -> int:
    try:
        return os.open(name, _PASS | os.O_NOFOLLOW, dir_fd=descriptor)
    except OSError:
        found = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
        if S_ISLNK(found.st_mode):
            raise LinkError(path) from None
        raise


def _repository(descriptor: int) -> os.stat_result | None:
    """Return the `.git` of a folder, which marks the top of a checkout; None if it has none."""
    try:
        return os.stat(_GIT, dir_fd=descriptor)
    except FileNotFoundError:
        with suppress(FileNotFoundError):  # a link that leads nowhere
            return os.stat(_GIT, dir_fd=descriptor, follow_symlinks=False)
        return None


def _open_worktree(descriptor: int, name: str, repository: os.stat_result) -> int | None:
    """Follow a link to the top of a linked worktree; Git takes no `.git` into a commit."""
    inner = None
    try:
        inner = os.open(name, _PASS, dir_fd=descriptor)
        with os.fdopen(os.open(_GIT, _READ, dir_fd=inner), "rb") as file:
            text = os.fsdecode(file.read(_GIT_FILE_BYTES)).strip()
        folder = Path(text.removeprefix("gitdir: "))
        common = os.stat(folder.parent.parent, dir_fd=inner)
        if folder.parent.name == _LINKED_WORKTREES and os.path.samestat(common, repository):
            return inner
    except (OSError, ValueError) as error:  # a .git that is not a file; a path with a zero byte
        if find_limit(error):
            raise
    if inner is not None:
        os.close(inner)
    return None


def require_plain(found: os.stat_result, path: Path) -> None:
    """Raise LinkError or NotAFileError unless it is a regular file."""
    if S_ISLNK(found.st_mode):
        raise LinkError(path)
    if S_ISDIR(found.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not S_ISREG(found.st_mode):
        raise NotAFileError(path)


def _kind(entry: os.DirEntry[str]) -> Kind:
    if entry.is_symlink():
        return Kind.LINK
    if entry.is_dir(follow_symlinks=False):
        return Kind.FOLDER
    return Kind.FILE if entry.is_file(follow_symlinks=False) else Kind.OTHER


class LinkError(OSError):
    """A link that is not followed; `is_above` if it is a parent folder of the path."""

    def __init__(self, path: Path, *, is_above: bool = False) -> None:
        super().__init__(errno.ELOOP, "It is a link", str(path))
        self.is_above = is_above


class NotAFileError(OSError):
    """A pipe, a device or a socket in place of a file."""

    def __init__(self, path: Path) -> None:
        super().__init__(errno.EINVAL, "It is a pipe, a device or a socket", str(path))


class TooManyError(OSError):
    """A folder with too many entries."""

    def __init__(self, path: Path, most: int) -> None:
        super().__init__(errno.EFBIG, f"It contains more than {counted(most, 'file')}", str(path))


class TooLargeError(OSError):
    """A file with too many bytes; `size` is their number."""

    def __init__(self, path: Path, size: int) -> None:
        super().__init__(errno.EFBIG, os.strerror(errno.EFBIG), str(path))
        self.size = size
