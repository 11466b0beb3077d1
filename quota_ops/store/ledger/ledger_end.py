"""The name and the digest of the newest file of a ledger, outside the folder of all ledgers.

Restoring a backup of that folder does not change the record, so a run recognizes an older copy,
also one that has as many files as the ledger had.
"""

import re
from hashlib import sha256
from typing import NamedTuple

from quota_ops.model.errors import InvalidInput
from quota_ops.store.ledger import claims
from quota_ops.store.places.numbered_files import is_file_name, read_file
from quota_ops.store.places.run_store import ClusterStore

KIND = "parquet"
"""The file type of ledgers."""
_NO_LEDGER = (
    "no ledger, although runs have begun to apply: it is lost, or none of them has written or "
    "verified anything"
)
_END = re.compile(r"(\S+) ([0-9a-f]{64})")


class LedgerEnd(NamedTuple):
    """The newest file of a ledger, and the SHA-256 of its bytes."""

    name: str
    digest: str

    @classmethod
    def of_file(cls, name: str, content: bytes) -> "LedgerEnd":
        """Return the end of a ledger whose newest file has this content."""
        return cls(name, sha256(content).hexdigest())


def read(records: ClusterStore) -> LedgerEnd | None:
    """Return the ledger file that was written last, even after a restored backup.

    After the first run on a restored ledger, the record is of that ledger again. Read it before the
    ledger: it is written after each change, so it is never newer than a complete ledger. None if it
    was never written or does not parse. Raises InvalidInput if it cannot be read.
    """
    place = records.ledger_end
    try:
        text = read_file(place).decode("ascii", "replace").strip()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InvalidInput(
            f"{place} cannot be read: {error.strerror}",
            "Move the file elsewhere. A plan that clears quotas then needs approval once.",
        ) from error
    found = _END.fullmatch(text)
    return LedgerEnd(*found.groups()) if found and is_file_name(found[1], KIND) else None


def explain_old_copy(
    records: ClusterStore, read_file: str | None, end: LedgerEnd | None, *, by: int | None = None
) -> str | None:
    """Return why the ledger file that was read may be of an older copy; None if it is the newest.

    Without a record, any ledger may be an older copy, and a claim shows that there was a ledger, or
    that its run ended before it wrote one; the claim of the run `by` does not. Raises InvalidInput
    if the file of the record cannot be read.
    """
    if end is None:
        unknown = "the run store has no record of its newest file (ledger_ends is lost or damaged)"
        lost = _NO_LEDGER if claims.last_number(records, but=by) else None
        return lost if read_file is None else f"a ledger that may be an older copy: {unknown}"
    if read_file is None:
        return f"no ledger: its newest file, {end.name}, is lost"
    if read_file < end.name:
        return f"an older copy of the ledger, whose newest file was {end.name}"
    if has_file(records, end):
        return None
    if (records.ledger / end.name).exists():
        return (
            f"a changed ledger, or another copy of it: its {end.name} is not the file that a run "
            "wrote last"
        )
    return f"another copy of the ledger: it lacks the {end.name} that a run wrote last"


def has_file(records: ClusterStore, end: LedgerEnd) -> bool:
    """Return whether a ledger has exactly this file. Raises InvalidInput if that cannot be read."""
    try:
        return LedgerEnd.of_file(end.name, read_file(records.ledger / end.name)) == end
    except OSError:
        return False


def write(records: ClusterStore, end: LedgerEnd) -> None:
    """Record the newest file of the ledger. Raises InvalidInput if that fails."""
    records.ledger_end.replace(" ".join(end).encode(), durable=True)
