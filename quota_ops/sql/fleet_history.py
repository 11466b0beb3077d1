"""The history of all clusters for their overview: the newest summary, read once."""

from typing import Any

import pyarrow as pa

from quota_ops.model.fleet_history import FleetHistory
from quota_ops.model.history import DAYS, QUOTAS
from quota_ops.model.tables import Row, Table
from quota_ops.store import parquet
from quota_ops.store.history_summaries import Summary, read_summaries, read_table
from quota_ops.store.run_store import RunStore


def read_fleet_history(store: RunStore, since: str) -> FleetHistory:
    """Return the days from a date (`2026-11-01`) on, and the quotas that drifted since then.

    Reads the newest summary, which ends with a past day: with hundreds of clusters, reading each
    run of today would take longer than the overview. Raises InvalidInput if a summary is damaged.
    """
    from pyarrow import compute  # noqa: PLC0415 - only the drift DAG needs it

    newest = next(read_summaries(store), None)

    def read(table: Table[Row], *conditions: Any) -> list[Row]:
        return _read(store, newest, table, *conditions)

    days = read(DAYS, compute.field("date") >= since)
    quotas = read(QUOTAS, compute.field("drifts") > 0, compute.field("last_seen") >= since)
    return FleetHistory(sorted(days, key=lambda one: one.date), quotas)


def _read(
    store: RunStore, summary: Summary | None, table: Table[Row], *conditions: Any
) -> list[Row]:
    rows: pa.Table = read_table(store, summary, table)
    for condition in conditions:
        rows = rows.filter(condition)
    return list(parquet.read_rows(table, rows))
