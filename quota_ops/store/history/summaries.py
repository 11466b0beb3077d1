"""Summaries of the history: what happened to each quota and day, up to the end of a day.

history/summary/00000001.json            the manifest of a summary, created once
history/summary/part-UUID/...            its tables; a part without a manifest is an unfinished one
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple
from uuid import uuid4

import pyarrow as pa

from quota_ops.model.errors import InvalidInput
from quota_ops.model.history.history import DAYS, OWNERS, QUOTAS
from quota_ops.model.quotas.tables import Table
from quota_ops.store.history.history import Day, ReadDay, discard, read_day
from quota_ops.store.places import parquet
from quota_ops.store.places.json_text import json_text
from quota_ops.store.places.numbered_files import create_next, file_name, numbers
from quota_ops.store.places.place import Place
from quota_ops.store.places.run_store import RunStore
from quota_ops.store.places.written_by import stamp

TABLES: tuple[Table[Any], ...] = (QUOTAS, DAYS, OWNERS)
KEPT = 30
"""How many summaries are kept: one that is older than a late end is continued instead."""
_KIND = "json"
_NOT_COUNTED = (
    "an end was added after days were deleted, and is not counted; "
    "delete this folder to accept that, but keep history/summary"
)
_FIELDS = ("until", "damaged", "files", "days")


class Summary(NamedTuple):
    """A summary of all days up to `until`."""

    number: int
    until: str
    days: Mapping[str, str]
    """The compacted file of each day that it has."""
    files: Mapping[str, tuple[str, ...]]
    """The paths of the files of each table below the folder of summaries."""

    damaged: Mapping[str, str]
    """Why a day is not counted, by date."""

    def find_deleted(self, days: Iterable[Day]) -> set[str]:
        """Return the dates of its days that were deleted since, so that they cannot be read again.

        An end that was added after that does not make up for the day's compacted file.
        """
        return {*self.days}.difference(day.date for day in days if day.newest)


def folder_of(store: RunStore) -> Place:
    """Return the folder of summaries."""
    return store.history / "summary"


def new_part(store: RunStore) -> Place:
    """Return a new folder for the tables of a summary."""
    return folder_of(store) / f"part-{uuid4().hex}"


def read_summaries(store: RunStore) -> Iterator[Summary]:
    """Yield the summaries, the newest first; one with a damaged manifest is skipped."""
    for number in reversed(numbers(folder_of(store), _KIND)):
        try:
            kept = json.loads((folder_of(store) / file_name(number, _KIND)).read())
            files = {name: tuple(paths) for name, paths in kept["files"].items()}
            days, damaged = dict(kept["days"]), dict(kept["damaged"])
            yield Summary(number, str(kept["until"]), days, files, damaged)
        except (AttributeError, KeyError, OSError, TypeError, ValueError):
            continue


def find_start(
    store: RunStore, days: Iterable[Day], read: ReadDay = read_day
) -> tuple[Summary | None, tuple[str, ...]]:
    """Return the newest summary that can be continued, and what it therefore does not count.

    That is the newest one whose days have no new end, if all later days can be read again; else
    the newest one if it has days that were deleted; None if all days have to be read.
    """
    days, read = tuple(days), cache(read)
    deleted: set[str] | None = None
    fallback: tuple[Summary | None, tuple[str, ...]] = (None, ())
    for summary in read_summaries(store):
        before = [day for day in days if day.date <= summary.until]
        # A summarized day keeps few files of ends: those of yesterday, until they are deleted, and
        # damaged ones.
        with_ends = {day.date: read(day) for day in before if day.ends}
        late = {date for date, rows in with_ends.items() if rows.newer}
        late |= {day.date for day in before if summary.days.get(day.date) != day.newest}
        troubles = [trouble for rows in with_ends.values() for trouble in rows.troubles]
        missed = [f"{day.folder}: {_NOT_COUNTED}" for day in before if day.date in late]
        found = summary, (*summary.damaged.values(), *troubles, *missed)
        if deleted is None:
            deleted = summary.find_deleted(days)
            fallback = found if deleted else fallback
        if not late and all(date <= summary.until for date in deleted):
            return found
    return fallback


def publish(store: RunStore, summary: Summary) -> None:
    """Create the manifest of a summary with the next free number; delete the oldest summaries.

    Raises InvalidInput as `Place.create`.
    """
    folder = folder_of(store)
    content = json_text(stamp({name: getattr(summary, name) for name in _FIELDS})).encode()
    known = numbers(folder, _KIND)
    number = create_next(
        lambda number: folder / file_name(number, _KIND),
        lambda _: content,
        max(known, default=0) + 1,
    )
    for old in [summary for summary in read_summaries(store) if summary.number <= number - KEPT]:
        discard(folder.below(path) for paths in old.files.values() for path in paths)
        discard([folder / file_name(old.number, _KIND)])


def read_table(store: RunStore, summary: Summary | None, table: Table[Any]) -> pa.Table:
    """Return a table of a summary, empty without one. Raises InvalidInput if it is damaged."""
    if summary is None or not summary.files.get(table.name):
        return parquet.from_rows(table, [])
    return pa.concat_tables(
        parquet.from_bytes(table, _read(place), str(place)).cast(parquet.arrow_schema(table))
        for place in places_of(store, summary, table)
    )


def places_of(store: RunStore, summary: Summary | None, table: Table[Any]) -> list[Place]:
    """Return the files of a table of a summary."""
    return [folder_of(store).below(path) for path in (summary.files[table.name] if summary else ())]


def _read(place: Place) -> bytes:
    try:
        return place.read()
    except OSError as error:
        raise InvalidInput(
            f"{place} cannot be read: {error.strerror}",
            "Delete the folder history/summary of the run store, and summarize the history again.",
        ) from error
