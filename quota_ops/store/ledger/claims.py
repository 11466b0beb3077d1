"""Claims: which runs have begun to apply which values, even if there was nothing to change.

They are outside the ledger, which does not change in that case: one small file for each run, named
by the run's number and created once.
"""

from collections.abc import Iterable
from hashlib import sha256
from typing import Any, NamedTuple

import msgspec

from quota_ops.model.errors import Refused
from quota_ops.store.places.numbered_files import encode, file_name, numbers, read_content
from quota_ops.store.places.run_store import ClusterStore

KIND = "json"
"""The file type of claims."""


class Claim(NamedTuple):
    """A run, its commit, and the digest of the values that it applies."""

    run: str
    commit: str | None
    values: str


def digest_of(rows: Iterable[tuple[Any, ...]]) -> str:
    """Return the digest of rows that begin with entity and key, independent of their order."""
    return sha256(msgspec.json.encode(sorted(rows))).hexdigest()


def create(records: ClusterStore, number: int, claim: Claim) -> None:
    """Create the claim of the run with this number, unless this run has one.

    Raises InvalidInput like `Place.create`; Refused if another run has claimed the number, so that
    nothing shows which of the two began later.
    """
    place = records.claims / file_name(number, KIND)
    if not place.create(encode(Claim, claim)) and (other := read(records, number).run) != claim.run:
        raise Refused(
            f"run {other} has the same number as this run, {number}: {place}",
            "Nothing was written. Start a new run, and check that no other program changes the "
            "folder `sequence` of the run store.",
        )


def list_numbers(records: ClusterStore) -> list[int]:
    """Return the numbers of the runs that have begun to apply, in order."""
    return numbers(records.claims, KIND)


def last_number(records: ClusterStore, *, but: int | None = None) -> int:
    """Return the largest number of a run, `but` this one, that has begun to apply; 0 if none."""
    return max((run for run in numbers(records.claims, KIND) if run != but), default=0)


def find(records: ClusterStore, number: int) -> Claim | None:
    """Return the claim of the run with this number; None without one. Raises as `read` does."""
    return read(records, number) if number in numbers(records.claims, KIND) else None


def read(records: ClusterStore, number: int) -> Claim:
    """Return the claim of the run with this number. Raises InvalidInput if it is damaged."""
    place = records.claims / file_name(number, KIND)
    remedy = "Nothing was written. Move the file elsewhere and plan again."
    return read_content(place, Claim, remedy)
