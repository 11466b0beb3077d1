"""A run that begins anew, as a DAG run that was cleared: what it came to before is set aside."""

from itertools import count

from quota_ops.model.errors import InvalidInput
from quota_ops.model.tables import DESIRED, DIFFERENCES
from quota_ops.store.place import Place
from quota_ops.store.run_folder import ABOUT, CHECKED, POLICY, ROLLBACK, RunFolder, stage_file
from quota_ops.store.succession import BEGAN, note_beginning

_STARTED = frozenset({ABOUT, BEGAN, ROLLBACK})
_KEPT = {
    "check": _STARTED,
    "describe": _STARTED | {POLICY, CHECKED, DESIRED.file, stage_file("check")},
}
"""What each stage that may begin anew finds in the folder, and needs."""


def set_aside(folder: RunFolder, stage: str) -> None:
    """Move what an earlier attempt left from this stage on below attempt-0001, or the next.

    Its outcomes would be told as those of the attempt that begins. Nothing is moved of one that
    compared nothing, nor the records of how the run ended (`end-0001.json`), which count on. Each
    file is copied before it is deleted. Raises InvalidInput when one cannot be.
    """
    if not folder.has(DIFFERENCES.file):
        return
    places = (folder.place / f"attempt-{number:04d}" for number in count(1))
    aside = next(place for place in places if not (place / DIFFERENCES.file).exists())
    try:
        files = (one.name for one in folder.place.entries() if not one.is_folder)
        left = [one for one in files if one not in _KEPT[stage] and not one.startswith("end-")]
        # Killed on the way, the next attempt goes on: the file that it looks for is moved last.
        for name in sorted(left, key=DIFFERENCES.file.__eq__):
            file = folder.place / name
            (aside / name).create(file.read())
            file.delete()
    except (OSError, InvalidInput) as error:
        why = error.strerror if isinstance(error, OSError) else error.message
        raise InvalidInput(
            f"what an earlier attempt left in {folder.place} cannot be set aside: {why}"
        ) from error


def begin(folder: RunFolder, ledger_folder: Place) -> None:
    """Set aside as describe does, and note the beginning as `note_beginning` does.

    Raises InvalidInput as `ledger.last` does.
    """
    set_aside(folder, "describe")
    note_beginning(folder, ledger_folder)
