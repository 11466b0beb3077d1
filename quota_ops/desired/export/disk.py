"""Files of desired state that a command writes: no link is followed, and nothing overwritten."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from quota_ops.desired.files import open_cluster
from quota_ops.desired.yaml.checkout import Folder, open_folder
from quota_ops.desired.yaml.source import MAX_FILE_BYTES, not_opened
from quota_ops.model.errors import InvalidDesiredState, InvalidInput

_OWN = 2
"""The desired state's folder and the cluster's."""


def list_names(folder: Path) -> tuple[str, ...]:
    """The names in a cluster's folder, in order; none where there is no such folder."""
    with _report_system_errors(folder):
        try:
            with open_cluster(folder) as opened:
                return tuple(one.name for one in opened.entries())
        except FileNotFoundError:
            return ()


def read_text(folder: Path, name: str) -> str | None:
    """The text of a file in a cluster's folder, its lines ended as Unix does; None without it."""
    with _report_system_errors(folder):
        try:
            with open_cluster(folder) as opened:
                data = opened.read(name, MAX_FILE_BYTES)
        except FileNotFoundError:
            return None
    return data.decode("utf-8", "replace").replace("\r\n", "\n").replace("\r", "\n")


def write_files(
    folder: Path, files: Mapping[str, str], *, replace: str | None = None, own: int = _OWN
) -> None:
    """Write files into a folder, which is made where it is missing.

    `replace` names the one that may be there already; InvalidInput for any other, and for a link
    in the place of a folder, as `open_folder` refuses it with `own`.
    """
    with _report_system_errors(folder), _open_or_create(folder, own) as opened:
        for name, text in files.items():
            try:
                opened.write(name, text.encode(), replace=name == replace)
            except FileExistsError:
                raise InvalidInput(
                    f"{folder / name} already exists", "Choose another folder."
                ) from None


@contextmanager
def _open_or_create(path: Path, own: int) -> Iterator[Folder]:
    """Open a folder as `open_folder` does, and make it where it is missing."""
    whole = path.absolute()
    missing = [one for one in (whole, *whole.parents) if not os.path.lexists(one)]
    with open_folder(whole.parents[len(missing) - 1] if missing else path, own - len(missing)):
        path.mkdir(parents=True, exist_ok=True)
    with open_folder(path, own) as folder:
        yield folder


@contextmanager
def _report_system_errors(folder: Path) -> Iterator[None]:
    """Turn what the system refuses into an error for people."""
    try:
        yield
    except OSError as error:
        problem = not_opened(error, str(folder), "folder")
        raise InvalidDesiredState([problem], files=1, quotas=0) from None
