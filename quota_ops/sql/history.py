"""The events of quotas and clusters, computed from the history when a reader needs them."""

from collections.abc import Collection
from operator import itemgetter
from typing import NamedTuple

import pyarrow as pa
from msgspec.structs import replace

from quota_ops.model.history import history
from quota_ops.model.history.history import QUOTA_DRIFTS, FleetHistory
from quota_ops.model.quotas.difference import Kind
from quota_ops.model.quotas.rows import Key
from quota_ops.model.quotas.tables import Row, Table
from quota_ops.store.history.history import ReadDay, list_days, read_day, read_rows
from quota_ops.store.places import parquet
from quota_ops.store.places.run_store import RunStore
from quota_ops.store.run.names import NamedCluster


class History(NamedTuple):
    """The history of the quotas of a cluster; `troubles` are the files that could not be read."""

    quotas: tuple[history.QuotaHistory, ...]
    days: tuple[history.DayHistory, ...]
    owners: tuple[history.OwnerDrift, ...]
    troubles: tuple[str, ...]
    changes: tuple[history.HistoryRow, ...] = ()
    """The rows of all quotas that the newest changes concern, if they are wanted."""


class Newest(NamedTuple):
    """Which changes of a cluster are wanted: at most `most`, since a date."""

    cluster_id: str
    since: str
    most: int


class Events(NamedTuple):
    """The history of some days: the drifts of quotas, and each end of a run."""

    drifts: tuple[history.Drift, ...]
    rows: tuple[history.HistoryRow, ...]
    """The rows of HISTORY."""
    troubles: tuple[str, ...]


def read_history(
    store: RunStore,
    cluster: NamedCluster,
    entities: Collection[str] = (),
    read: ReadDay = read_day,
    newest: Newest | None = None,
    *,
    and_owners: bool = False,
) -> History:
    """Return the history of a cluster.

    `quotas` are those of the entities, by their texts, and of all entities that ever drifted.
    `read` reads a day; a caller that also needs events passes a cached one to both. `changes` are
    empty without `newest`, and `owners` without `and_owners`. Raises InvalidInput if the history
    cannot be listed.
    """
    from quota_ops.sql.embedded import fold_history  # DuckDB

    rows, troubles = _read_rows(store, cluster, "", read)
    if not rows.num_rows:  # a new cluster, for whose first run ten queries would take 0.1 s
        return History((), (), (), troubles)
    wanted = newest and newest._asdict()
    views = ["quotas", "days"] + and_owners * ["owners"]
    found = fold_history(rows, views, entities, and_drifted=True, newest=wanted)
    return History(
        _to_rows(history.QUOTAS, found["quotas"]),
        _to_rows(history.DAYS, found["days"]),
        _to_rows(history.OWNERS, found["owners"]) if and_owners else (),
        troubles,
        _to_rows(history.HISTORY, found["changes"]) if newest else (),
    )


class Sight(NamedTuple):
    """The last run that found an overriding quota, and what Git declared for its clients."""

    run: str
    started: str
    ended: str
    desired: float | None


def read_overriding_addresses(
    store: RunStore, cluster: NamedCluster, entities: Collection[str]
) -> tuple[dict[Key, Sight], tuple[history.QuotaHistory, ...]]:
    """Return where the addresses were seen that runs ever found overriding, a verify run too.

    And, if there are any, the history of `entities`. Raises InvalidInput like `read_history`.
    """
    rows, _ = _read_rows(store, cluster, "", read_day)
    names = ("kind", "entity", "key", *Sight._fields)
    sights = [
        (Key(entity, key), Sight(*sight))
        for kind, entity, key, *sight in parquet.to_rows(rows, *names)
        if kind == Kind.OVERRIDING and entity.startswith("ip=")
    ]
    found = dict(sorted(sights, key=lambda pair: pair[1].ended))
    if not found:
        return {}, ()
    from quota_ops.sql.embedded import fold_history  # DuckDB: 0.2 s

    return found, _to_rows(history.QUOTAS, fold_history(rows, ["quotas"], entities)["quotas"])


def read_events(
    store: RunStore,
    cluster: NamedCluster | None,
    since: str,
    entity: str | None = None,
    read: ReadDay = read_day,
) -> Events:
    """Return the history of one cluster or all, or of one entity, since a day.

    A drift that began before that day begins with it here; QUOTAS has its start. Raises
    InvalidInput if the history cannot be listed.
    """
    from quota_ops.sql.embedded import fold_history  # DuckDB

    rows, troubles = _read_rows(store, cluster, since, read)
    found = fold_history(rows, ("drifts", "ends"), entity and [entity])
    return Events(
        _to_rows(history.DRIFTS, found["drifts"]),
        _to_rows(history.HISTORY, found["ends"]),
        troubles,
    )


def read_stored(
    store: RunStore, cluster: NamedCluster, since: str
) -> tuple[list[tuple[str, str, str, float | None]], tuple[str, ...]]:
    """Return what ends of runs since a day found after their writes, and what cannot be read.

    That is the end, the entity, the key and the value, by time. Raises InvalidInput like
    `read_events`.
    """
    rows, troubles = _read_rows(store, cluster, since, read_day)
    names = ("ended", "run", "revision", "entity", "key", "found", "found_by")
    columns = [parquet.to_values(rows[name]) for name in names]
    newest = dict(sorted(zip(zip(*columns[:2], strict=True), columns[2], strict=True)))
    found = [
        (ended, entity, key, value)
        for ended, run, revision, entity, key, value, by in zip(*columns, strict=True)
        if entity and key and by and revision == newest[ended, run]
    ]
    return sorted(found, key=itemgetter(0)), troubles


def read_fleet_history(store: RunStore, since: str) -> FleetHistory:
    """Return the days of all clusters since a date (`2026-11-01`), and the quotas that drifted.

    Reads compacted days alone, which end with a past day: with hundreds of clusters, reading each
    run of today would take longer than the overview. Raises InvalidInput if the history cannot be
    listed.
    """
    from quota_ops.sql.embedded import count_drifts  # DuckDB

    rows, _ = read_rows((replace(day, ends=()) for day in list_days(store, since)), since)
    days, drifts = count_drifts(rows)
    found = sorted(_to_rows(history.DAYS, days), key=lambda day: day.date)
    return FleetHistory(found, _to_rows(QUOTA_DRIFTS, drifts))


def _read_rows(
    store: RunStore, cluster: NamedCluster | None, since: str, read: ReadDay
) -> tuple[pa.Table, tuple[str, ...]]:
    """Return rows; those of a cluster id that had several names have its newest one."""
    days = list_days(store, since, cluster and cluster.names)
    rows, troubles = read_rows(days, since, read)
    if cluster and cluster.cluster_id:
        from pyarrow import compute  # few clusters are named by their ids

        rows = rows.filter(compute.equal(rows["cluster_id"], cluster.cluster_id))
        at, column = rows.schema.get_field_index("cluster"), rows.schema.field("cluster")
        names = pa.array([cluster.names[0]] * rows.num_rows, pa.string())
        rows = rows.set_column(at, column, names.cast(column.type))
    return rows, troubles


def _to_rows(table: Table[Row], arrow: pa.Table) -> tuple[Row, ...]:
    return tuple(parquet.read_rows(table, parquet.conform(table, arrow, table.name)))
