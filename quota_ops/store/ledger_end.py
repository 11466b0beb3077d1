"""The name of the newest file of a ledger, recorded outside the folder of all ledgers.

Restoring a backup of that folder does not change the record, so a run recognizes an older copy.
"""

from quota_ops.model.errors import InvalidInput
from quota_ops.store.numbered_files import is_file_name, read_file
from quota_ops.store.place import Place

KIND = "parquet"
"""The file type of ledgers."""


def read(folder: Place) -> str | None:
    """Return the name of the ledger file that was written last, even after a restored backup.

    After the first run on a restored ledger, the record names that ledger's files again. Read it
    before the ledger: it is written after each change, so it is never newer than a complete ledger.
    None if it was never written or is not a name. Raises InvalidInput if it cannot be read.
    """
    place = _place(folder)
    try:
        name = read_file(place).decode("ascii", "replace").strip()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InvalidInput(
            f"{place} cannot be read: {error.strerror}",
            "Move the file elsewhere. A plan that clears quotas then needs approval once.",
        ) from error
    return name if is_file_name(name, KIND) else None


def explain_old_copy(read_file: str | None, end: str | None) -> str | None:
    """Return why the ledger file that was read may be an older copy; None if it is the newest.

    Without a record, any ledger may be an older copy.
    """
    if end is None:
        unknown = "the run store has no record of its newest file (ledger_ends is lost or damaged)"
        return None if read_file is None else f"a ledger that may be an older copy: {unknown}"
    return (
        f"an older copy of the ledger, whose newest file was {end}"
        if (read_file or "") < end
        else None
    )


def write(folder: Place, name: str) -> None:
    """Record the newest file of the ledger in this folder; InvalidInput if that fails."""
    _place(folder).replace(name.encode(), durable=True)


def _place(folder: Place) -> Place:
    return folder.parent.parent / "ledger_ends" / folder.name
