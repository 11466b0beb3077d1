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
from quota_ops.store.places import parquet
from quota_ops.store.places.place import Place

_WRITERS = 16
"""How many runs get their results at the same time."""
_PREFIX = "diff-"


class DiffAttempt(Struct, frozen=True):
    """An attempt for some runs; the engine writes TABLE/folder=NUMBER/FILE to its place.

    NUMBER is the position of the run, from 0.
    """

    runs: Sequence[ComparedRun]
    place: Place
    manifests: Sequence[Place]
    """For each run, the next manifest when the attempt began: diff-0001.json, ..."""

    @classmethod
    @contextmanager
    def begin(cls, runs: Sequence[ComparedRun]) -> Iterator[Self]:
        """Yield a new attempt, and delete what it wrote and nobody needs at the end."""
        with ThreadPoolExecutor(_WRITERS) as writers:
            manifests = list(writers.map(_next_manifest, runs))
        place = runs[0].folder / f"spark-{uuid4().hex}"
        try:
            yield cls(runs, place, manifests)
        finally:
            with suppress(InvalidInput, OSError):
                delete_tree(place)

    def publish(self) -> None:
        """Make the attempt the result of each run.

        Raises InvalidInput for the first run for which another attempt has become the result
        since this one began.
        """
        files: dict[tuple[str, str], list[Place]] = {}
        for leaf in self.place.walk():
            table, _, rest = leaf.path.partition("/folder=")
            number, _, name = rest.partition("/")
            if name.startswith("part-"):
                files.setdefault((table, number), []).append(self.place.below(leaf.path))
        with ThreadPoolExecutor(_WRITERS) as writers:
            for end in [
                writers.submit(self._publish_run, number, files) for number in range(len(self.runs))
            ]:
                end.result()

    def _publish_run(self, number: int, files: dict[tuple[str, str], list[Place]]) -> None:
        run, manifest = self.runs[number], self.manifests[number]
        content = {"attempt": self.place.name, "cluster": run.cluster, "at": iso_utc()}
        if not manifest.create(json.dumps(content).encode()):
            raise InvalidInput(
                f"{manifest} exists: another attempt to compare this run ended first",
                "Its result is in the run folder. Run diff again if the run was described since.",
            )
        # Nothing can be planned without differences: no reader finds those of an earlier attempt.
        (run.folder / DIFFERENCES.file).delete()
        for table in RESULTS:
            written = files.get((table.name, str(number)), [])
            if written:
                (file,) = written
                file.move(run.folder / table.file)
            else:
                empty = parquet.to_bytes(table, parquet.from_rows(table, []))
                (run.folder / table.file).replace(empty)


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
