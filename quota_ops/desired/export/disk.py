"""Files of desired state that a command writes or reads: whole ones, without following a link."""

import errno
import os
from collections.abc import Container, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path, PurePosixPath
from secrets import token_hex
from stat import S_IMODE

from quota_ops.desired.files import DRAFT, open_cluster_folder
from quota_ops.desired.yaml.checkout import (
    Folder,
    LinkError,
    NotAFileError,
    open_folder,
    require_plain,
)
from quota_ops.desired.yaml.source import MAX_FILE_BYTES, not_opened
from quota_ops.model.errors import InvalidDesiredState, InvalidInput, find_limit

_WRITE = os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY
_CREATE = _WRITE | os.O_CREAT | os.O_EXCL
_OWN = 2
"""How many trailing folders of a path may not be links: the desired state's and the cluster's."""


def list_names(folder: Path) -> tuple[str, ...]:
    """List the names in a cluster's folder, in order; none if the folder does not exist."""
    with _report_system_errors(folder):
        try:
            with open_cluster_folder(folder) as opened:
                return tuple(entry.name for entry in opened.entries())
        except FileNotFoundError:
            return ()


def read_text(folder: Path, name: str) -> str | None:
    """Read a file of a cluster's folder, with Unix line ends; None if it does not exist."""
    with _report_system_errors(folder):
        try:
            with open_cluster_folder(folder) as opened:
                data = opened.read(name, MAX_FILE_BYTES)
        except FileNotFoundError:
            return None
    return data.decode("utf-8", "replace").replace("\r\n", "\n").replace("\r", "\n")


def write_files(
    folder: Path, files: Mapping[str, bytes], *, replaced: Container[str] = (), own: int = _OWN
) -> None:
    """Write files into a folder, which is created if it is missing.

    Each is whole at every moment. If one cannot be written, none is replaced.
    Only files in `replaced` may exist already; InvalidInput for any other, and for a file that
    cannot be written. Links are refused as by `open_folder` with `own`.
    """
    with _report_system_errors(folder), _open_or_create(folder, own) as opened:
        try:
            _write_all(opened, files, replaced)
        except (LinkError, NotAFileError):
            raise
        except FileExistsError as error:
            raise InvalidInput(
                f"{error.filename} already exists", "Choose another folder."
            ) from None
        except OSError as error:
            if find_limit(error):
                raise
            raise InvalidInput(
                f"{error.filename or folder} cannot be written: {error.strerror}",
                "No file was changed. Try again when it can be written.",
            ) from None


def _write_all(folder: Folder, files: Mapping[str, bytes], replaced: Container[str]) -> None:
    """Write all files, and only then move the new ones over those that they replace.

    So a file is whole at every moment, with its old content or its new one.
    """
    with ExitStack() as undo, ExitStack() as folders:
        moves = []
        for name, data in files.items():
            *above, last = PurePosixPath(name).parts
            descriptor, path = folders.enter_context(folder.enter(above)), folder.path / name
            mode, new = 0o666, last
            if name in replaced:
                mode, new = _find_mode(descriptor, last, path), f"{DRAFT}{token_hex(4)}"
                moves.append((descriptor, new, last))
            opened = _open(descriptor, new, _CREATE, path, mode)
            undo.callback(os.unlink, new, dir_fd=descriptor)
            _write(opened, data, path)
        undo.pop_all()
        for descriptor, new, last in moves:
            os.rename(new, last, src_dir_fd=descriptor, dst_dir_fd=descriptor)


def _find_mode(descriptor: int, name: str, path: Path) -> int:
    """Return the permissions of a file that may be written. Raises OSError for any other."""
    opened = _open(descriptor, name, _WRITE, path)
    try:
        found = os.fstat(opened)
    finally:
        os.close(opened)
    require_plain(found, path)
    return S_IMODE(found.st_mode)


def _open(descriptor: int, name: str, flags: int, path: Path, mode: int = 0) -> int:
    try:
        return os.open(name, flags, mode, dir_fd=descriptor)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise LinkError(path) from None
        error.filename = str(path)
        raise


def _write(opened: int, data: bytes, path: Path) -> None:
    try:
        with os.fdopen(opened, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(opened)
    except OSError as error:
        error.filename = str(path)
        raise


@contextmanager
def _open_or_create(path: Path, own: int) -> Iterator[Folder]:
    """Open a folder as `open_folder` does, and create it if it is missing."""
    whole = path.absolute()
    missing = [ancestor for ancestor in (whole, *whole.parents) if not os.path.lexists(ancestor)]
    with open_folder(whole.parents[len(missing) - 1] if missing else path, own - len(missing)):
        path.mkdir(parents=True, exist_ok=True)
    with open_folder(path, own) as folder:
        yield folder


@contextmanager
def _report_system_errors(folder: Path) -> Iterator[None]:
    """Raise an error of the operating system as one with a place and a remedy."""
    try:
        yield
    except OSError as error:
        problem = not_opened(error, str(folder), "folder")
        raise InvalidDesiredState([problem], files=1, quotas=0) from None
