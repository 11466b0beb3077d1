"""Find and remove files that a run store no longer needs.

Always kept: approvals, holds that have not ended, the record of how each run ended unless it only
compared or planned without an error, the last verified run of each cluster, the last run before the
kept days of recorded use, each run whose writes are not yet verified or whose plan may wait for
approval in Airflow, the newest hundred files of each ledger and of its claims, and every file that
no run recorded.
"""

import dataclasses
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import datetime, timedelta
from itertools import islice, pairwise

from msgspec import Struct
from msgspec.structs import replace

from quota_ops.model.errors import InvalidInput, QuotaOpsError
from quota_ops.model.moment import iso_utc
from quota_ops.model.plans.ledger_edits import VERIFIED
from quota_ops.model.quotas.tables import ACTUAL, DIFFERENCES
from quota_ops.model.runs.run import Pruned
from quota_ops.model.runs.stages import STAGES, StageStatus
from quota_ops.store.history import digests
from quota_ops.store.ledger import claims, holds, ledger
from quota_ops.store.ledger.ledger_end import KIND
from quota_ops.store.places.numbered_files import is_file_name
from quota_ops.store.places.place import Place
from quota_ops.store.places.run_store import RunStore
from quota_ops.store.run import files
from quota_ops.store.run.claim import claim_run
from quota_ops.store.run.folder import RunFolder
from quota_ops.store.run.listing import summarize_run
from quota_ops.store.run.names import latest_first, read_id, read_number
from quota_ops.store.run.state import RunState


class Expired(Struct, frozen=True):
    """A run, an overview or a file that need not be kept, and the files that prune removes."""

    what: str
    """`run`, `overview`, `ledger`, `claim`, `hold` or `digest`."""
    cluster: str
    place: Place
    """A folder, or for all but `run` and `overview` the file, or the last one."""
    size: int
    """The bytes of `files`."""
    files: tuple[Place, ...]
    """The files to remove; run.json is last, because after a crash the others need its date."""
    stays: bool = True
    """Whether its folder stays, with the records of how it ended or files that no run recorded."""
    unknown: tuple[Place, ...] = ()
    """Files in it that no run recorded; they stay."""
    recorded: frozenset[str] = frozenset()
    """The paths of the files in it that runs recorded, without claims."""


LONGEST_WAIT = timedelta(days=30)
"""How long a plan may wait for approval, before which the kept time begins."""
LEDGER_FILES = 100
"""How many of the newest files of a ledger, and of its claims, are kept."""

_RUN_RECORDS = frozenset({files.APPROVAL, files.ROLLBACK, *files.RECORDS})
_READ_ENDS = frozenset({StageStatus.DONE, StageStatus.NOT_RUN, StageStatus.REFUSED})
"""How the stages of a plan end; guards refuse one."""


def find_newest_start(store: RunStore, kept: timedelta) -> datetime | None:
    """Return when the newest run began, by number; None if no run has recorded it.

    If the store received a run earlier than the run's own time says, the store's time counts. If
    the newest runs began longer than `kept` after the one before them, that one counts: a clock
    that was ahead during a few runs would make all others old.
    """
    starts = list(islice(_list_starts(store), _TRUSTED + 1))
    for newer, older in pairwise(starts):
        if newer - older > kept:
            return older
    return starts[0] if starts else None


_TRUSTED = 3
"""How many runs it takes until a time long after all other runs counts."""


def _list_starts(store: RunStore) -> Iterator[datetime]:
    """Yield when runs began, the newest first."""
    for run in latest_first(store, store.runs()):
        with suppress(InvalidInput, OSError):
            if started := _read_start(RunFolder(run)):
                yield min(started, (run / files.ABOUT).modified())


def _read_start(folder: RunFolder) -> datetime | None:
    """Return when a run or an overview began; None if that is unknown."""
    with suppress(InvalidInput, KeyError, TypeError, ValueError):
        started = datetime.fromisoformat(str(folder.read_json(files.ABOUT)["started"]))
        return started if started.tzinfo else None
    return None


def find_expired(store: RunStore, before: datetime) -> tuple[Expired, ...]:
    """Return everything that began before a moment and need not be kept.

    Raises InvalidInput if the store cannot be listed, or if a ledger is damaged: which writes are
    not yet verified is then unknown.
    """
    return (
        *_expired_overviews(store, before),
        *_expired_numbers(store),
        *_expired_records(store, before),
        *_expired_runs(store, before),  # last: each is claimed, for which a full store has no room
    )


def remove(expired: Iterable[Expired], now: datetime) -> tuple[tuple[Expired, str], ...]:
    """Remove expired files; return those that could not be removed, each with the reason."""
    failures = []
    for found in expired:
        try:
            if found.what == "run" and RunFolder(found.place).find_original() is None:
                _remove_run(found, now)
            else:
                _remove(found)
        except (OSError, QuotaOpsError) as error:
            why = error.message if isinstance(error, QuotaOpsError) else error.strerror
            failures.append((found, why or str(error)))
    return tuple(failures)


def _remove_run(found: Expired, now: datetime) -> None:
    """Remove the files of a run, unless it was resumed after it was found.

    It is claimed, as by a process that applies it; the claims go after the plan. One whose folder
    stays is marked as pruned before. Raises Claimed or InvalidInput if it was resumed.
    """
    folder = RunFolder(found.place)
    with claim_run(folder):
        recorded, _ = _split_files(found.place)
        if {path for path in recorded if not files.is_claim(path)} != found.recorded:
            raise InvalidInput("it was resumed after it was listed, so it stays")
        if found.stays:
            folder.write(files.PRUNED, Pruned(iso_utc(now)))
        for file in found.files:
            if not files.is_claim(file.name) and file.name != files.ABOUT:
                file.delete()
    claims = tuple(found.place / name for name in found.place.list() if files.is_claim(name))
    about = tuple(file for file in found.files if file.name == files.ABOUT)
    _remove(replace(found, files=(*claims, *about)))


def refuse_pruned(folder: RunFolder) -> None:
    """Raise InvalidInput if `prune` has left only the records of how a run ended."""
    if folder.has(files.PRUNED):
        at = folder.read(files.PRUNED).at
        end = summarize_run(folder.place)
        raise InvalidInput(
            f"run {end.run} was pruned at {at}: its plan, tables and report are gone",
            f"How it ended: {end.sentence or end.status} Its records are in {folder.place}.",
        )


def _expired_runs(store: RunStore, before: datetime) -> Iterator[Expired]:
    unsettled = _unsettled_runs(store)
    by_cluster: dict[tuple[str, str], list[RunFolder]] = {}
    for run in store.runs():
        by_cluster.setdefault((run.parent.name, read_id(run) or ""), []).append(RunFolder(run))
    for (cluster, cluster_id), folders in sorted(by_cluster.items()):
        verified = [folder for folder in folders if _is_verified(folder)]
        last = max(verified, key=_read_order, default=None)
        look = _find_look(store, cluster_id, folders, before)
        for folder in folders:
            started = _read_start(folder)
            kept = folder in {last, look} or folder.place.name in unsettled
            if kept or started is None or started >= before:
                continue
            if started >= before - LONGEST_WAIT and _may_wait(folder):
                continue
            yield from _expired_folder("run", cluster, folder.place, stays=not _only_read(folder))


def _may_wait(folder: RunFolder) -> bool:
    """Return whether a plan may wait for approval: the end of each DAG run writes a report."""
    is_open = folder.has(files.PLAN) and not folder.has(files.REPORT)
    return is_open and folder.read_json(files.ABOUT).get("dag_id") is not None


def _read_order(folder: RunFolder) -> tuple[int, str]:
    return read_number(folder.place), folder.place.name


def _find_look(
    store: RunStore, cluster_id: str, folders: Iterable[RunFolder], before: datetime
) -> RunFolder | None:
    """Return the last run before a moment that read the limits of the recorded days since then."""
    days = digests.list_days(store, cluster_id) if cluster_id else []
    if not any(day >= f"{before:%Y-%m-%d}" for day in days):
        return None
    looks = [
        folder
        for folder in folders
        if (started := _read_start(folder)) and started < before and folder.has(ACTUAL.file)
    ]
    return max(looks, key=_read_order, default=None)


def _only_read(folder: RunFolder) -> bool:
    """Return whether a run compared or planned without an error, and left no record of its own."""
    names = set(folder.place.list())
    state = RunState(dataclasses.replace(folder, names=frozenset(names)))
    if state.has_sent or any(name.startswith("end-") for name in names) or names & _RUN_RECORDS:
        return False
    try:
        ends = {state.stage(stage).status for stage in STAGES}
    except InvalidInput:
        return False
    return ends <= _READ_ENDS and not names.isdisjoint({files.REPORT, files.PLAN, DIFFERENCES.file})


def _expired_folder(what: str, cluster: str, place: Place, *, stays: bool) -> Iterator[Expired]:
    """Yield the folder, unless nothing in it is removed; it stays if it has unknown files."""
    recorded, unknown = _split_files(place)
    stays = stays or bool(unknown)
    is_open = files.ALTER in recorded or files.END.of(1) not in recorded
    keeps = {files.Prune.RECORD, *((files.Prune.OPEN_RECORD,) if is_open else ())} if stays else ()
    removed = {
        path: size for path, size in recorded.items() if files.find_pruned(path) not in keeps
    }
    if size := sum(removed.values()):
        removable = map(place.below, sorted(removed, key=files.ABOUT.__eq__))
        others = tuple(map(place.below, unknown))
        own = frozenset(path for path in recorded if not files.is_claim(path))
        yield Expired(what, cluster, place, size, tuple(removable), stays, others, own)


def _split_files(folder: Place) -> tuple[dict[str, int], list[str]]:
    """Return the sizes of the files that runs recorded in a folder, and the paths of all others.

    An empty folder that runs make is neither.
    """
    recorded, unknown = dict[str, int](), list[str]()
    for leaf in folder.walk():
        if leaf.is_own and not leaf.is_folder and files.find_pruned(leaf.path):
            recorded[leaf.path] = leaf.size
        elif not (leaf.is_folder and files.is_run_folder(leaf.path)):
            unknown.append(leaf.path)
    return recorded, unknown


def _expired_overviews(store: RunStore, before: datetime) -> Iterator[Expired]:
    folder = store.overviews
    for name in folder.list():
        started = _read_start(RunFolder(folder / name))
        if started and started < before:
            yield from _expired_folder("overview", "", folder / name, stays=False)


def _expired_records(store: RunStore, before: datetime) -> Iterator[Expired]:
    """Yield the files of each hold that ended, and of each day of recorded use."""
    for what, name, list_ended in (
        ("hold", "holds", holds.list_ended),
        ("digest", "use", digests.list_ended),
    ):
        for folder in (store.root / name).folders():
            sizes = {leaf.path: leaf.size for leaf in folder.walk()}
            for ended in list_ended(folder, before):
                size = sum(sizes.get(file.name, 0) for file in ended)
                yield Expired(what, folder.name, ended[-1], size, ended)


def _expired_numbers(store: RunStore) -> Iterator[Expired]:
    """Yield all but the newest files of each ledger, and of its claims."""
    for records in store.with_ledgers():
        for what, folder, kind in (
            ("ledger", records.ledger, KIND),
            ("claim", records.claims, claims.KIND),
        ):
            found = [leaf for leaf in folder.walk() if is_file_name(leaf.path, kind)]
            for leaf in found[:-LEDGER_FILES]:
                place = folder / leaf.path
                yield Expired(what, folder.name, place, leaf.size, (place,))


def _unsettled_runs(store: RunStore) -> frozenset[str]:
    """Return the names of the runs whose writes are not yet verified."""
    rows = (row for records in store.with_ledgers() for row in ledger.read(records).rows)
    return frozenset(row.run for row in rows if row.state != VERIFIED)


def _is_verified(folder: RunFolder) -> bool:
    try:
        return RunState(folder).stage("verify").status is StageStatus.DONE
    except InvalidInput:
        return False


def _remove(expired: Expired) -> None:
    for file in expired.files:
        file.delete()
    if expired.what in {"run", "overview"}:
        for folder in expired.place.folders():
            if files.is_run_folder(folder.name):
                _remove_empty_folders(folder)
        if not expired.stays:
            expired.place.delete_folder()


def _remove_empty_folders(folder: Place) -> None:
    """Remove a folder and those below it, unless a person's file is in them."""
    for below in folder.folders():
        _remove_empty_folders(below)
    with suppress(OSError):
        folder.delete_folder()
