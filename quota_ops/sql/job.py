"""The diff of one or many runs: check the input tables, run an engine, name what is damaged."""

import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, NamedTuple, Protocol

from quota_ops.model.errors import ClusterTrouble, InvalidInput
from quota_ops.model.quotas.tables import (
    ACTUAL,
    CLUSTERS,
    DESIRED,
    DIFFERENCES,
    HOLDS,
    LEDGER,
    OVERRIDES,
    Table,
)
from quota_ops.model.runs.stages import StageResult, StageStatus
from quota_ops.model.text import counted
from quota_ops.store.places import parquet
from quota_ops.store.places.numbered_files import read_file
from quota_ops.store.places.place import Place

SIDES: tuple[Table[Any], ...] = (DESIRED, ACTUAL, LEDGER, HOLDS, CLUSTERS)
RESULTS: tuple[Table[Any], ...] = (OVERRIDES, DIFFERENCES)
_READERS = 16
"""How many run folders are checked at the same time, each with a few small reads."""


class ComparedRun(NamedTuple):
    """A run folder with the five tables of one cluster, by its Kafka cluster id."""

    cluster: str
    folder: Place


class Engine(Protocol):
    """An engine that compares Parquet files by compare.sql; DuckDB judges what differs."""

    def diff(self, runs: Sequence[ComparedRun]) -> None:
        """Write the tables RESULTS to each run folder.

        Raises EngineFailed, or InvalidInput, if that is not possible for all of them.
        """
        ...


class EngineFailed(ClusterTrouble):
    """The engine could not run the SQL; a damaged input may be the reason."""


class SomeDamaged(InvalidInput):
    """Some of many runs cannot be compared; all others have their results."""

    def __init__(self, failures: Mapping[Place, InvalidInput], count: int) -> None:
        lines = [f"{place.parent.name}: {error.message}" for place, error in failures.items()]
        how_many = f"{len(failures):,} of {counted(count, 'cluster')}"
        super().__init__(
            f"{how_many} cannot be compared:\n  " + "\n  ".join(lines),
            "Correct that, and describe these clusters again. All others have results.",
        )
        self.failures = failures


def diff_runs(engine: Engine, folders: Sequence[Place]) -> None:
    """Write the tables RESULTS to each run folder, computed by one job.

    Each folder has the tables desired, actual, ledger, holds and clusters of one cluster. A table
    that is missing, damaged, has other columns or rows of another cluster costs its run alone, and
    so do folders of the same cluster: raises SomeDamaged after the others are written, or
    InvalidInput for a single run. Raises EngineFailed.
    """
    runs, failures = _check_all(folders)
    failures |= _find_twins(runs)
    runs = [run for run in runs if run.folder not in failures]
    while runs:
        try:
            engine.diff(runs)
            break
        except (EngineFailed, InvalidInput):
            damaged = _find_damaged(runs)
            if not damaged:
                raise
            failures |= damaged
            runs = [run for run in runs if run.folder not in damaged]
    if failures and len(folders) == 1:
        raise failures[folders[0]]
    if failures:
        raise SomeDamaged(failures, len(folders))


def diff_and_record(engine: Engine, folders: Sequence[Place]) -> None:
    """Diff runs, and record in the folder of each how its stage diff ended.

    If the engine itself fails, nothing is recorded for runs whose input was valid. Raises as
    `diff_runs` does.
    """
    from quota_ops.store.run.folder import RunFolder  # a command has it already

    began, failures = time.monotonic(), dict[Place, InvalidInput]()
    done: Iterable[Place] = ()
    try:
        diff_runs(engine, folders)
        done = folders
    except SomeDamaged as error:
        failures |= error.failures
        done = [place for place in folders if place not in failures]
        raise
    except InvalidInput as error:
        failures = dict.fromkeys(folders, error)
        raise
    finally:
        seconds = round(time.monotonic() - began, 3)
        for place in done:
            RunFolder(place).keep_end(StageResult("diff", StageStatus.DONE, seconds))
        for place, failure in failures.items():
            with suppress(InvalidInput):  # a failing store must not hide the error
                RunFolder(place).keep_end(
                    StageResult("diff", StageStatus.FAILED, seconds, str(failure))
                )


def _check_all(folders: Sequence[Place]) -> tuple[list[ComparedRun], dict[Place, InvalidInput]]:
    if len(folders) == 1:
        return [ComparedRun(_read_cluster(folders[0]), folders[0])], {}
    with ThreadPoolExecutor(_READERS) as readers:
        found = list(readers.map(_try_to_read_cluster, folders))
    runs, failures = [], {}
    for folder, cluster in zip(folders, found, strict=True):
        if isinstance(cluster, InvalidInput):
            failures[folder] = cluster
        else:
            runs.append(ComparedRun(cluster, folder))
    return runs, failures


def _find_twins(runs: Sequence[ComparedRun]) -> dict[Place, InvalidInput]:
    """Return an error for each run of a cluster that another run is of too."""
    same: dict[str, list[Place]] = {}
    for run in runs:
        same.setdefault(run.cluster, []).append(run.folder)
    return {
        folder: InvalidInput(
            f"the folders {' and '.join(sorted(twin.parent.name for twin in twins))} have the same "
            f"cluster_id {cluster}, so Git may declare two values of one quota",
            "Correct the cluster_id, or move the quotas of the cluster into one folder.",
        )
        for cluster, twins in same.items()
        if twins[1:]
        for folder in twins
    }


def _try_to_read_cluster(folder: Place) -> str | InvalidInput:
    try:
        return _read_cluster(folder)
    except InvalidInput as error:
        return error


def _find_damaged(runs: Sequence[ComparedRun]) -> dict[Place, InvalidInput]:
    """Return why a run cannot be compared, for each that has a table that cannot be read."""
    damaged = {}
    for run in runs:
        for table in SIDES:
            place = run.folder / table.file
            try:
                parquet.from_bytes(table, read_file(place), str(place))
            except InvalidInput as error:
                damaged[run.folder] = error
            except OSError as error:
                damaged[run.folder] = InvalidInput(f"{place} cannot be read: {error.strerror}")
    return damaged


def _read_cluster(folder: Place) -> str:
    """Return the cluster id of a run folder, after checking that each side has that id."""
    found: dict[Place, set[str | None]] = {}
    for table in SIDES:
        place = folder / table.file
        try:
            found[place] = parquet.read_clusters(table, place)
        except FileNotFoundError:
            raise InvalidInput(
                f"{place} is missing: the stage that writes it has not run"
            ) from None
    place = folder / CLUSTERS.file
    rows = parquet.from_bytes(CLUSTERS, read_file(place), str(place))
    if rows.num_rows != 1:
        raise InvalidInput(f"{place} must have one cluster, it has {rows.num_rows}")
    cluster = str(rows["cluster"][0].as_py())
    for place, clusters in found.items():
        if others := clusters - {cluster}:
            raise InvalidInput(
                f"{place} is of the cluster {min(map(str, others))}, but the run is of {cluster}",
                "Nothing was changed. "
                "Each run needs its own folder, and each cluster its own ledger.",
            )
    return cluster
