"""The record that verify writes, verification.json: the verified rows, and if it is current."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from hashlib import sha256

from quota_ops.model.errors import InvalidInput
from quota_ops.model.rows import Keys
from quota_ops.store.run_files import APPLIED, VERIFICATION
from quota_ops.store.run_folder import RunFolder


def find_verified(folder: RunFolder, rows: Keys, digest: str | None) -> Keys:
    """Return the rows that had the desired value when this run was verified after apply ended.

    `digest` is that of the current applied.json. Raises InvalidInput for a damaged file.
    """
    if not rows or not folder.has(VERIFICATION):
        return frozenset()
    verification = folder.read(VERIFICATION)
    if verification.applied not in {None, digest}:
        return frozenset()
    return rows - {row.id for row in verification.verdicts}


@contextmanager
def mark_superseded(folder: RunFolder) -> Iterator[None]:
    """Mark verification.json as superseded when the block fails and does not replace it.

    `find_verified` still uses its verdicts; a report omits them.
    """
    before = _content(folder)
    try:
        yield
    except BaseException:
        if before is not None and _content(folder) == before:
            with suppress(InvalidInput):  # damaged: the report shows it
                folder.write(VERIFICATION, replace(folder.read(VERIFICATION), earlier=True))
        raise


def _content(folder: RunFolder) -> bytes | None:
    """Return the bytes of verification.json, which differ for each verify; None if missing."""
    place = folder.place / VERIFICATION
    return place.read() if place.exists() else None


def follow_applied(folder: RunFolder, before: str | None) -> None:
    """Point verification.json at the current applied.json, if it pointed at `before`."""
    kept = folder.find(VERIFICATION)
    if kept and kept.applied == before:
        folder.write(VERIFICATION, replace(kept, applied=compute_applied_digest(folder)))


def compute_applied_digest(folder: RunFolder) -> str | None:
    """Return the digest of applied.json, which differs for each apply; None if it is missing."""
    place = folder.place / APPLIED
    return sha256(place.read()).hexdigest() if place.exists() else None
