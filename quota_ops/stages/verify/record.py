"""The record that verify writes, verification.json: the verified rows, and if it is current."""

from contextlib import suppress

from msgspec.structs import replace

from quota_ops.model.errors import InvalidInput
from quota_ops.store.run.files import VERIFICATION
from quota_ops.store.run.folder import RunFolder
from quota_ops.store.run.state import digest_applied


def mark_superseded(folder: RunFolder) -> None:
    """Mark verification.json as superseded: apply or verify begins again.

    `RunState.find_verified` still uses its verdicts; a report shows how much it verified, and when.
    """
    found = None
    with suppress(InvalidInput):  # damaged, which the report shows
        found = folder.find(VERIFICATION)
    if found and not found.earlier:
        folder.write(VERIFICATION, replace(found, earlier=True))


def follow_applied(folder: RunFolder, before: str | None) -> None:
    """Point verification.json at the current applied.json, if it pointed at `before`."""
    kept = folder.find(VERIFICATION)
    if kept and kept.applied == before:
        folder.write(VERIFICATION, replace(kept, applied=digest_applied(folder)))
