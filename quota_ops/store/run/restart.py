"""A run that is made again from a stage on: the files of its earlier attempt are moved aside."""

from itertools import count, takewhile

from quota_ops.model.errors import InvalidInput
from quota_ops.model.quotas.tables import DIFFERENCES
from quota_ops.store.places.place import Place
from quota_ops.store.run.files import stays_on_restart
from quota_ops.store.run.folder import RunFolder


def move_attempt(folder: RunFolder, stage: str) -> None:
    """Move the files of an earlier attempt, from this stage on, to attempt-0001, or the next.

    Otherwise its outcomes would count as those of the new attempt. Nothing is moved if it compared
    nothing; `run.files` declares which files stay. Each file is copied before it is deleted. Raises
    InvalidInput if that fails.
    """
    if not folder.has(DIFFERENCES.file):
        return
    free = folder.place / f"attempt-{len(list_attempts(folder)) + 1:04d}"
    try:
        files = (entry.name for entry in folder.place.entries() if not entry.is_folder)
        left = [name for name in files if not stays_on_restart(name, stage)]
        # differences.parquet is last: if the process is killed, the next attempt continues here.
        for name in sorted(left, key=DIFFERENCES.file.__eq__):
            file = folder.place / name
            (free / name).create(file.read())
            file.delete()
    except (OSError, InvalidInput) as error:
        why = error.strerror if isinstance(error, OSError) else error.message
        raise InvalidInput(
            f"the files of an earlier attempt in {folder.place} cannot be moved: {why}"
        ) from error


def list_attempts(folder: RunFolder) -> tuple[Place, ...]:
    """Return the folders of the earlier attempts, in order."""
    places = (folder.place / f"attempt-{number:04d}" for number in count(1))
    return tuple(takewhile(lambda place: (place / DIFFERENCES.file).exists(), places))
