"""The record that verify writes, verification.json: the verified rows, and if it is current."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from msgspec.structs import replace

from quota_ops.model.errors import InvalidInput
from quota_ops.store.places.numbered_files import read_file
from quota_ops.store.run.files import VERIFICATION
from quota_ops.store.run.folder import RunFolder
from quota_ops.store.run.state import digest_applied


@contextmanager
def mark_superseded(folder: RunFolder) -> Iterator[None]:
    """Mark verification.json as superseded when the block fails and does not replace it.

    `RunState.find_verified` still uses its verdicts; a report omits them.
    """
    before = _content(folder)
    try:
        yield
    except BaseException:
        with suppress(InvalidInput):  # damaged, which the report shows, or the store has failed
            if before is not None and _content(folder) == before:
                folder.write(VERIFICATION, replace(folder.read(VERIFICATION), earlier=True))
        raise


def _content(folder: RunFolder) -> bytes | None:
    """Return the bytes of verification.json, which differ for each verify; None if missing."""
    place = folder.place / VERIFICATION
    return read_file(place) if place.exists() else None


def follow_applied(folder: RunFolder, before: str | None) -> None:
    """Point verification.json at the current applied.json, if it pointed at `before`."""
    kept = folder.find(VERIFICATION)
    if kept and kept.applied == before:
        folder.write(VERIFICATION, replace(kept, applied=digest_applied(folder)))
