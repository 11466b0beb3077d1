"""One attempt of an engine to compare runs: its own prefix first, then the result of each run.

An object store cannot rename a folder, and two attempts for a run may overlap, for example when
Airflow gives up a task that still runs. So an attempt writes where no other one does. It becomes
the result of a run by creating the run's next manifest, which only one attempt can.
"""

import json
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import Self
from uuid import uuid4

from msgspec import Struct

from quota_ops.model.errors import InvalidInput
from quota_ops.model.moment import iso_utc
from quota_ops.model.quotas.tables import DIFFERENCES
from quota_ops.sql.job import RESULTS, ComparedRun
from quota_ops.store.places.place import Place

_READERS = 16
"""Of how many runs the next manifest is found at the same time."""
_PREFIX = "diff-"


class DiffAttempt(Struct, frozen=True):
    """An attempt for some runs; its place is for what the engine writes before the results."""

    runs: Sequence[ComparedRun]
    place: Place
    manifests: Sequence[Place]
    """For each run, the next manifest when the attempt began: diff-0001.json, ..."""

    @classmethod
    @contextmanager
    def begin(cls, runs: Sequence[ComparedRun]) -> Iterator[Self]:
        """Yield a new attempt, and delete what it wrote and nobody needs at the end."""
        with ThreadPoolExecutor(_READERS) as readers:
            manifests = list(readers.map(_next_manifest, runs))
        place = runs[0].folder / f"spark-{uuid4().hex}"
        try:
            yield cls(runs, place, manifests)
        finally:
            with suppress(InvalidInput, OSError):
                delete_tree(place)

    def publish(self, number: int, results: Sequence[bytes]) -> None:
        """Make the files of RESULTS, in that order, the result of a run, by its number from 0.

        Raises InvalidInput if another attempt has become its result since this one began.
        """
        run, manifest = self.runs[number], self.manifests[number]
        note = {"attempt": self.place.name, "cluster": run.cluster, "at": iso_utc()}
        if not manifest.create(json.dumps(note).encode()):
            raise InvalidInput(
                f"{manifest} exists: another attempt to compare this run ended first",
                "Its result is in the run folder. Run diff again if the run was described since.",
            )
        # Nothing can be planned without differences: no reader finds those of an earlier attempt.
        (run.folder / DIFFERENCES.file).delete()
        for table, content in zip(RESULTS, results, strict=True):
            (run.folder / table.file).replace(content)


def _next_manifest(run: ComparedRun) -> Place:
    names = [name for name in run.folder.list(_PREFIX) if name.startswith(_PREFIX)]
    last = max((int(name[len(_PREFIX) : -len(".json")]) for name in names), default=0)
    return run.folder / f"{_PREFIX}{last + 1:04d}.json"


def delete_tree(place: Place) -> None:
    """Delete a folder with everything below; some object stores list folders that are empty."""
    for entry in place.entries():
        if entry.is_folder:
            delete_tree(place / entry.name)
        else:
            (place / entry.name).delete()
    place.delete_folder()
