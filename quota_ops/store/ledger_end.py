"""The name of the file that a ledger ended with, noted outside of the folder of all ledgers.

A copy of that folder leaves the note alone, so a run can tell an older copy from the ledger.
"""

from quota_ops.model.errors import InvalidInput
from quota_ops.store.numbered_files import is_file_name
from quota_ops.store.place import Place

KIND = "parquet"
"""The kind of a ledger's numbered files."""


def read(folder: Place) -> str | None:
    """The name of the file that was written last, also where an older copy is in its place.

    That one's end counts from a run on that notes its policy there. Read it before the ledger:
    written after each change, it is never ahead of a whole one. None where it is not known: none
    was written, or what is there is no name. Raises InvalidInput when it cannot be read.
    """
    place = _place(folder)
    try:
        name = place.read().decode("ascii", "replace").strip()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InvalidInput(
            f"{place} cannot be read: {error.strerror}",
            "Move it aside. A plan that clears quotas then needs approval once.",
        ) from error
    return name if is_file_name(name, KIND) else None


def doubt(read_file: str | None, end: str | None) -> str | None:
    """Why the ledger file that was read may be an older copy; None where it is the last one.

    An end that is not known is no proof that a ledger is the last one.
    """
    if end is None:
        unknown = "the run store does not say at which file it was (ledger_ends is lost or damaged)"
        return None if read_file is None else f"a ledger that may be an older copy: {unknown}"
    return f"an older copy of the ledger: it was at {end}" if (read_file or "") < end else None


def write(folder: Place, name: str) -> None:
    """Note the file that the ledger in this folder ends with; InvalidInput where it cannot be."""
    _place(folder).replace(name.encode(), durable=True)


def _place(folder: Place) -> Place:
    return folder.parent.parent / "ledger_ends" / folder.name
