"""Files that a command writes or reads: no link is followed, and no file is overwritten."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from quota_ops.desired.files import open_cluster_folder
from quota_ops.desired.yaml.checkout import Folder, open_folder
from quota_ops.desired.yaml.source import MAX_FILE_BYTES, not_opened
from quota_ops.model.errors import InvalidDesiredState, InvalidInput

_OWN = 2
"""How many trailing folders of a path may not be links: the desired state's and the cluster's."""


def list_names(folder: Path) -> tuple[str, ...]:
    """List the names in a cluster's folder, in order; none if the folder does not exist."""
    with _report_system_errors(folder):
        try:
            with open_cluster_folder(folder) as opened:
                return tuple(one.name for one in opened.entries())
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
    folder: Path, files: Mapping[str, str], *, replace: str | None = None, own: int = _OWN
) -> None:
    """Write files into a folder, which is created if it is missing.

    Only the file named `replace` may exist already; InvalidInput for any other. Links are refused
    as by `open_folder` with `own`.
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
    """Open a folder as `open_folder` does, and create it if it is missing."""
    whole = path.absolute()
    missing = [one for one in (whole, *whole.parents) if not os.path.lexists(one)]
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
