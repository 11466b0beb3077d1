"""The remedies for files and folders of a run store that cannot be read or written."""

import errno
from contextlib import suppress
from pathlib import Path

IN_THE_WAY = "is in the way: move it elsewhere."
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
                "Free some space there (quota-ops prune removes old runs), or move the run store."
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
    return f"{found} {IN_THE_WAY}"
