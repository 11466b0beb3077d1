"""The name of the file that a ledger ended with, noted outside of the folder of all ledgers.

A copy of that folder leaves the note alone, so a run can tell an older copy from the ledger.
"""

from pathlib import Path

from quota_ops import artefact
from quota_ops.model.errors import InvalidInput
from quota_ops.numbered import is_file_name

KIND = "parquet"
"""The kind of a ledger's numbered files."""


def read(folder: Path) -> str | None:
    """The name of the file that was written last, also where an older copy is in its place.

    That one's end counts from a run on that notes its policy there. Read it before the ledger:
    written after each change, it is never ahead of a whole one. None where none was written, or
    what is there is no name; raises InvalidInput when it cannot be read.
    """
    place = _place(folder)
    try:
        name = place.read_bytes().decode("ascii", "replace")
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InvalidInput(f"{place} cannot be read: {error.strerror}") from error
    return name if is_file_name(name, KIND) else None


def write(folder: Path, name: str) -> None:
    """Note the file that the ledger in this folder ends with; InvalidInput where it cannot be."""
    artefact.write(_place(folder), name.encode())


def _place(folder: Path) -> Path:
    return folder.parent.with_name("ledger_ends") / folder.name
