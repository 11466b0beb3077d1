"""What a run store need not keep any longer, and its removal.

Always kept: approvals, holds, how each run that wrote or was decided on ended (`end-0001.json` and
the records beside it), the last verified run of each cluster, each run that wrote what nobody has
read back yet, the newest hundred files of each ledger and of its claims, and every file that no run
recorded.
"""

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime

from quota_ops.model.errors import InvalidInput
from quota_ops.model.ledger_edits import VERIFIED
from quota_ops.model.moment import iso_utc
from quota_ops.model.report import StageStatus
from quota_ops.store import claims, ledger
from quota_ops.store.history import PRUNED, past_run
from quota_ops.store.ledger_end import KIND
from quota_ops.store.numbered_files import file_name, numbers
from quota_ops.store.place import Place
from quota_ops.store.run_folder import (
    ABOUT,
    ADOPTED,
    ALTER,
    APPROVAL,
    RELEASED,
    ROLLBACK,
    RunFolder,
)
from quota_ops.store.run_json import typed
from quota_ops.store.run_store import RunStore


@dataclass(frozen=True, slots=True)
class Expired:
    """Something that need not be kept: what it is, where, its bytes, and what of it stays."""

    what: str
    """`run`, `overview`, `ledger` or `claim`."""
    cluster: str
    place: Place
    size: int
    stays: bool
    """Whether its folder stays with the records of how it ended, and the rest goes."""
    unknown: tuple[Place, ...] = ()
    """Files and folders in it that no run recorded; they stay."""


LEDGER_FILES = 100
"""Files of a ledger, and claims beside it, that are kept, the newest ones."""
ENDS = ("came_to", "sentence", "digest", "changes")
"""What pruned.json says of how a run ended."""

_RECORDS = frozenset({ABOUT, PRUNED, APPROVAL, ROLLBACK, ALTER, ADOPTED, RELEASED})
_END = "end-"
_RECORDED = re.compile(
    r"((run|began|policy|checked|described|facts|metadata|findings|plan|validated|approval|applied"
    r"|verification|report|audit|origins|rollback|alter|adopted|released|pruned"
    r"|stage-[a-z]+|(batch|end|settling)-\d{4,})\.json"
    r"|report\.(html|md|txt)"
    r"|(desired|actual|ledger|clusters|holds|differences|batches)\.parquet)"
    r"(\.[0-9a-f]{32}\.part)?"
)
"""The names of the files that runs leave in their folders, also of one that was never finished."""
_ATTEMPT = re.compile(r"attempt-\d{4,}")
"""The folder of what an earlier attempt of a run left."""


def find_expired(store: RunStore, before: datetime) -> tuple[Expired, ...]:
    """Everything that need not be kept of what began before a moment.

    Raises InvalidInput when the store cannot be listed, or a ledger is damaged: what nobody has
    read back is not known then.
    """
    return (
        *_expired_runs(store, before),
        *_expired_overviews(store, before),
        *_expired_ledger_files(store),
        *_expired_claims(store),
    )


def remove(expired: Iterable[Expired], now: datetime) -> tuple[str, ...]:
    """Remove what has expired; why what is still there could not be removed.

    A run whose folder stays is marked as pruned before the rest of it goes.
    """
    failures = []
    for one in expired:
        try:
            if one.stays and one.what == "run":
                folder, run = RunFolder(one.place), past_run(one.place).as_json()
                folder.write_json(PRUNED, {"at": iso_utc(now)} | {name: run[name] for name in ENDS})
            _remove(one)
        except (OSError, InvalidInput) as error:
            failures.append(f"{one.place}: {getattr(error, 'strerror', None) or error}")
    return tuple(failures)


def is_recorded(name: str) -> bool:
    """Whether runs leave files of this name in their folders."""
    return bool(_RECORDED.fullmatch(name))


def refuse_pruned(folder: RunFolder) -> None:
    """Raise InvalidInput when only the records of how a run ended are left."""
    if folder.has(PRUNED):
        at = folder.read_as(PRUNED, lambda told: typed(told["at"], str))
        raise InvalidInput(
            f"run {folder.place.name} was pruned at {at}: its plan, tables and report are gone",
            f"How it ended: quota-ops runs, and the records end-*.json in {folder.place}.",
        )


def _expired_runs(store: RunStore, before: datetime) -> Iterator[Expired]:
    unsettled = _unsettled_runs(store)
    by_cluster: dict[str, list[RunFolder]] = {}
    for run in store.runs():
        by_cluster.setdefault(run.parent.name, []).append(RunFolder(run))
    for cluster, folders in sorted(by_cluster.items()):
        verified = [one for one in folders if _is_verified(one)]
        last = max(verified, key=_order, default=None)
        for folder in folders:
            kept = folder == last or folder.place.name in unsettled
            if kept or not _began_before(folder, before):
                continue
            has_ended = any(name.startswith(_END) for name in folder.place.list(after=_END))
            yield from _expired_folder("run", cluster, folder.place, stays=has_ended)


def _expired_folder(what: str, cluster: str, place: Place, *, stays: bool) -> Iterator[Expired]:
    """The folder, unless nothing of it is removed; it stays where it has unknown files as well."""
    recorded, unknown = _split_files(place)
    stays = stays or bool(unknown)
    removable = _without_records(place, recorded) if stays else recorded
    if size := sum(one.size() for one in removable):
        yield Expired(what, cluster, place, size, stays, tuple(unknown))


def _split_files(folder: Place) -> tuple[list[Place], list[Place]]:
    """The files that a run recorded in its folder, and everything else that lies there."""
    recorded, unknown = [], []
    for name, is_folder, is_own in folder.entries():
        place = folder / name
        if is_own and is_folder and _is_attempt(place):
            of_attempt, beside = _split_files(place)
            recorded += of_attempt
            unknown += beside
        elif is_own and not is_folder and is_recorded(name):
            recorded.append(place)
        else:
            unknown.append(place)
    return recorded, unknown


def _without_records(run: Place, recorded: Iterable[Place]) -> list[Place]:
    """What goes of a folder that stays."""
    return [
        one
        for one in recorded
        if one.parent != run or not (one.name in _RECORDS or one.name.startswith(_END))
    ]


def _expired_overviews(store: RunStore, before: datetime) -> Iterator[Expired]:
    folder = store.overviews
    for name in folder.list():
        if _began_before(RunFolder(folder / name), before):
            yield from _expired_folder("overview", "", folder / name, stays=False)


def _expired_ledger_files(store: RunStore) -> Iterator[Expired]:
    for folder in store.ledgers():
        for number in numbers(folder, KIND)[:-LEDGER_FILES]:
            place = folder / file_name(number, KIND)
            yield Expired("ledger", folder.name, place, place.size(), stays=False)


def _expired_claims(store: RunStore) -> Iterator[Expired]:
    for ledger_folder in store.ledgers():
        folder = claims.folder_of(ledger_folder)
        for number in numbers(folder, claims.KIND)[:-LEDGER_FILES]:
            place = folder / file_name(number, claims.KIND)
            yield Expired("claim", folder.name, place, place.size(), stays=False)


def _unsettled_runs(store: RunStore) -> frozenset[str]:
    """The names of the runs that wrote, or may have written, what nobody has read back."""
    rows = (row for folder in store.ledgers() for row in ledger.read(folder).rows)
    return frozenset(row.run for row in rows if row.state != VERIFIED)


def _is_verified(folder: RunFolder) -> bool:
    try:
        return folder.stage_result("verify").status is StageStatus.DONE
    except InvalidInput:
        return False


def _order(folder: RunFolder) -> tuple[int, str]:
    """The order of runs in their store: by the numbers that they took, older ones by name."""
    try:
        return folder.about()["sequence"] or 0, folder.place.name
    except InvalidInput:
        return 0, folder.place.name


def _began_before(folder: RunFolder, moment: datetime) -> bool:
    """Whether a run began before a moment; of one that does not tell nothing is removed."""
    try:
        started = str(folder.read_json(ABOUT)["started"])
        return datetime.fromisoformat(started) < moment
    except (InvalidInput, KeyError, TypeError, ValueError):
        return False


def _remove(one: Expired) -> None:
    if one.what not in {"run", "overview"}:
        one.place.delete()
        return
    recorded, _ = _split_files(one.place)
    removable = _without_records(one.place, recorded) if one.stays else recorded
    # run.json is last: without it nobody knows the age of what is left when this is stopped.
    for place in sorted(removable, key=lambda place: place.name == ABOUT):
        place.delete()
    for attempt in filter(_is_attempt, one.place.folders()):
        with suppress(OSError):  # somebody's file is in it
            attempt.delete_folder()
    if not one.stays:
        one.place.delete_folder()


def _is_attempt(place: Place) -> bool:
    return bool(_ATTEMPT.fullmatch(place.name))
