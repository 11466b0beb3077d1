"""The history of clusters: summarized by a job, and read for one cluster with what is newer."""

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from functools import cache
from typing import Any, NamedTuple, Protocol

import pyarrow as pa

from quota_ops.model.errors import InvalidInput
from quota_ops.model.history.fleet_history import FleetHistory
from quota_ops.model.history.history import (
    DAYS,
    DRIFTS,
    HISTORY,
    OWNERS,
    QUOTAS,
    DayHistory,
    Drift,
    HistoryRow,
    OwnerDrift,
    QuotaHistory,
)
from quota_ops.model.quotas.tables import Row, Table
from quota_ops.store.history.history import (
    Day,
    ReadDay,
    compact,
    discard,
    list_days,
    name_foreign,
    read_day,
)
from quota_ops.store.history.summaries import (
    TABLES,
    Summary,
    find_start,
    folder_of,
    new_part,
    places_of,
    publish,
    read_summaries,
    read_table,
)
from quota_ops.store.places import parquet
from quota_ops.store.places.place import Place
from quota_ops.store.places.run_store import RunStore


class HistoryEngine(Protocol):
    """An engine that continues a summary."""

    def fold_days(
        self, days: Sequence[Place], before: Mapping[Table[Any], Sequence[Place]], to: Place
    ) -> Mapping[str, Sequence[Place]]:
        """Write QUOTAS, DAYS and OWNERS of compacted days to a folder; return their files.

        `before` has the files of the same tables of the summary that is continued. Raises
        EngineFailed.
        """
        ...


class History(NamedTuple):
    """What happened to the quotas of a cluster; `troubles` name what could not be read."""

    quotas: tuple[QuotaHistory, ...]
    days: tuple[DayHistory, ...]
    owners: tuple[OwnerDrift, ...]
    troubles: tuple[str, ...]


class Events(NamedTuple):
    """What happened within some days: the drifts of quotas, and each end of a run."""

    drifts: tuple[Drift, ...]
    rows: tuple[HistoryRow, ...]
    """The rows of HISTORY."""
    troubles: tuple[str, ...]


class Summarized(NamedTuple):
    """The last day of a new summary, None if nothing is new; and what could not be read."""

    until: str | None
    troubles: tuple[str, ...]

    def as_text(self) -> str:
        """Return what was summarized, and a line for each file that is not counted."""
        did = "nothing is new" if self.until is None else f"summarized up to {self.until}"
        return "\n".join(
            (f"history: {did}", *(f"not counted: {trouble}" for trouble in self.troubles))
        )


def summarize_history(
    engine: HistoryEngine, store: RunStore, now: datetime, last: str | None = None
) -> Summarized:
    """Compact the past days, up to `last`, and continue the summary with those that it lacks.

    An interrupted call leaves the earlier summary. Raises EngineFailed, and InvalidInput if the
    store cannot be written.
    """
    last = last or f"{now - timedelta(days=1):%Y-%m-%d}"
    listed = [day for day in list_days(store) if day.date <= last]
    newest = next(read_summaries(store), None)
    deleted = newest.find_deleted(listed) if newest else ()
    kept = [day for day in listed if day.date not in deleted]
    troubles = (*name_foreign(listed), *compact(kept, now))
    listed = [day for day in list_days(store) if day.date <= last]
    days = [day for day in listed if day.newest]
    start, late = find_start(store, listed)
    new = [day for day in days if start is None or day.date > start.until]
    damaged = {day.date: trouble for day in new if (trouble := _check(day))}
    readable = [day for day in new if day.date not in damaged]
    damaged = (dict(start.damaged) if start else {}) | damaged
    troubles = tuple(dict.fromkeys((*troubles, *late, *damaged.values())))
    if not readable:
        return Summarized(None, troubles)
    part = new_part(store)
    before = {table: places_of(store, start, table) for table in TABLES}
    places = [day.folder / str(day.newest) for day in readable]
    try:
        written = engine.fold_days(places, before, part)
    except BaseException:
        with suppress(InvalidInput):
            discard(part.below(leaf.path) for leaf in part.walk())
        raise
    below = len(folder_of(store).key) + 1
    files = {name: tuple(place.key[below:] for place in found) for name, found in written.items()}
    had = dict(start.days) if start else {}
    known = had | {day.date: str(day.newest) for day in new}
    publish(store, Summary(0, days[-1].date, known, files, damaged))
    return Summarized(days[-1].date, troubles)


def _check(day: Day) -> str | None:
    """Return why a compacted day cannot be read; None if it can."""
    place = day.folder / str(day.newest)
    try:
        parquet.from_bytes(HISTORY, place.read(), str(place))
    except InvalidInput as error:
        return error.message
    except OSError as error:
        return f"{place} cannot be read: {error.strerror}"
    return None


def read_history(
    store: RunStore,
    cluster: str,
    entities: Collection[str] = (),
    read: ReadDay = read_day,
    *,
    cluster_id: str | None = None,
) -> History:
    """Return the history of a cluster by its name: the newest summary, and what is newer.

    `quotas` are those of the entities, by their texts, and of all entities that ever drifted. With
    a cluster id, only its runs count, and each day is read: summaries are by name.
    `read` reads a day; a caller that also needs events passes a cached one to both. Raises
    InvalidInput if the history cannot be listed, or a summary is damaged.
    """
    from quota_ops.sql.embedded import fold_history  # noqa: PLC0415 - DuckDB

    days, read = [day.of_cluster(cluster) for day in list_days(store)], cache(read)
    start, late = (None, ()) if cluster_id else find_start(store, days, read)
    new = [day for day in days if start is None or day.date > start.until]
    rows, troubles = _read_days(new, read, cluster_id)
    before = read_table(store, start, QUOTAS)
    found = fold_history(rows, before, cluster, entities, and_drifted=True)
    return History(
        _to_rows(QUOTAS, found["quotas"]),
        (*_of_cluster(store, start, DAYS, cluster), *_to_rows(DAYS, found["days"])),
        (*_of_cluster(store, start, OWNERS, cluster), *_to_rows(OWNERS, found["owners"])),
        (*name_foreign(days), *late, *troubles),
    )


def read_events(
    store: RunStore,
    cluster: str | None,
    since: str,
    entity: str | None = None,
    read: ReadDay = read_day,
    *,
    cluster_id: str | None = None,
) -> Events:
    """Return what happened on a cluster or all, or to one entity, from a day on.

    With a cluster id, only its runs count.

    A drift that began before that day begins with it here; QUOTAS has its start. Raises
    InvalidInput if the history cannot be listed.
    """
    from quota_ops.sql.embedded import fold_history  # noqa: PLC0415 - DuckDB

    days = [day.of_cluster(cluster) for day in list_days(store) if day.date >= since]
    rows, troubles = _read_days(days, read, cluster_id)
    found = fold_history(rows, parquet.from_rows(QUOTAS, []), cluster, entity and [entity])
    ends = _to_rows(HISTORY, found["ends"])
    return Events(_to_rows(DRIFTS, found["drifts"]), ends, (*name_foreign(days), *troubles))


def read_newest_changes(days: Sequence[Day], cluster_id: str, most: int) -> tuple[HistoryRow, ...]:
    """Return the rows of the quotas that the newest changes of a cluster concern, at most `most`.

    Files that cannot be read are left out.
    """
    from quota_ops.sql.embedded import select_newest  # noqa: PLC0415 - DuckDB

    rows, _ = _read_days(days, read_day, None)
    return _to_rows(HISTORY, select_newest(rows, cluster_id, most))


def read_fleet_history(store: RunStore, since: str) -> FleetHistory:
    """Return the days from a date (`2026-11-01`) on, and the quotas that drifted since then.

    Reads the newest summary, which ends with a past day: with hundreds of clusters, reading each
    run of today would take longer than the overview. Raises InvalidInput if a summary is damaged.
    """
    from pyarrow import compute  # noqa: PLC0415 - only the drift DAG needs it

    newest = next(read_summaries(store), None)
    days = read_table(store, newest, DAYS).filter(compute.field("date") >= since)
    drifted = (compute.field("drifts") > 0) & (compute.field("last_seen") >= since)
    quotas = read_table(store, newest, QUOTAS).filter(drifted)
    return FleetHistory(
        sorted(parquet.read_rows(DAYS, days), key=lambda day: day.date),
        list(parquet.read_rows(QUOTAS, quotas)),
    )


def _read_days(
    days: Sequence[Day], read: ReadDay, cluster_id: str | None
) -> tuple[pa.Table, tuple[str, ...]]:
    found = list(map(read, days))
    tables = [table for day in found for table in day.tables]
    rows = pa.concat_tables(tables) if tables else parquet.from_rows(HISTORY, [])
    rows = rows.unify_dictionaries().combine_chunks()  # DuckDB takes far longer for many chunks
    if cluster_id:
        from pyarrow import compute  # noqa: PLC0415 - few names are those of several clusters

        rows = rows.filter(compute.equal(rows["cluster_id"], cluster_id))
    return rows, tuple(trouble for day in found for trouble in day.troubles)


def _to_rows(table: Table[Row], arrow: pa.Table) -> tuple[Row, ...]:
    return tuple(parquet.read_rows(table, parquet.conform(table, arrow, table.name)))


def _of_cluster(
    store: RunStore, start: Summary | None, table: Table[Row], cluster: str
) -> list[Row]:
    rows = parquet.read_rows(table, read_table(store, start, table))
    return [row for row in rows if getattr(row, "cluster", None) == cluster]
