"""A run that begins anew, as a DAG run that was cleared: what it came to before is set aside."""

from itertools import count
from pathlib import Path

from quota_ops.model.errors import InvalidInput
from quota_ops.model.tables import DESIRED, DIFFERENCES
from quota_ops.store import local
from quota_ops.store.run_folder import ABOUT, CHECKED, POLICY, ROLLBACK, RunFolder, stage_file
from quota_ops.store.succession import BEGAN, note_beginning

_STARTED = frozenset({ABOUT, BEGAN, ROLLBACK})
_KEPT = {
    "check": _STARTED,
    "describe": _STARTED | {POLICY, CHECKED, DESIRED.file, stage_file("check")},
}
"""What each stage that may begin anew finds in the folder, and needs."""


def set_aside(folder: RunFolder, stage: str) -> None:
    """Move what an earlier attempt left from this stage on into a folder, attempt-0001 or the next.

    Its outcomes would be told as those of the attempt that begins. Nothing is moved of one that
    compared nothing, nor the records of how the run ended (`end-0001.json`), which count on.
    Raises InvalidInput when a file cannot be moved.
    """
    if not folder.has(DIFFERENCES.file):
        return
    places = (folder.path / f"attempt-{number:04d}" for number in count(1))
    try:
        aside = next(place for place in places if not (place / DIFFERENCES.file).exists())
        files = [one for one in folder.path.iterdir() if one.is_file()]
        left = [one for one in files if one.name not in _KEPT[stage]]
        local.make_folder(aside)
        # Killed on the way, the next attempt goes on: the file that it looks for is moved last.
        for file in sorted(left, key=lambda one: one.name == DIFFERENCES.file):
            if not file.name.startswith("end-"):
                file.rename(aside / file.name)
    except OSError as error:
        raise InvalidInput(
            f"what an earlier attempt left in {folder.path} cannot be set aside: {error.strerror}"
        ) from error


def begin(folder: RunFolder, ledger_folder: Path) -> None:
    """Set aside as describe does, and note the beginning as `note_beginning` does.

    Raises InvalidInput as `ledger.last` does.
    """
    set_aside(folder, "describe")
    note_beginning(folder, ledger_folder)
