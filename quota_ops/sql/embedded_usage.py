"""Digests of use, and the delays that limits would have caused, by DuckDB."""

import logging
from collections.abc import Mapping
from typing import Any

import duckdb
import pyarrow as pa

from quota_ops.model.moment import timed
from quota_ops.model.quotas.tables import Table
from quota_ops.model.usage.digest import DELAYS, DIGEST, USE
from quota_ops.sql import text
from quota_ops.sql.embedded import interruptible
from quota_ops.store.places import parquet

_log = logging.getLogger(__name__)


def digest_day(rates: pa.Table, scrapes: pa.Table, day: str, step: int) -> pa.Table:
    """Return DIGEST of a day, sorted, from the samples of that day.

    `rates` has `time`, `broker`, `key`, `user`, `client_id`, `value`; `scrapes` has `time`,
    `broker`, `up`. `step` is how many seconds pass between two scrapes at most.
    """
    views = {"rates": _rename(rates), "scrapes": scrapes}
    return _sort(_run(DIGEST, text.digest_text(day, step), views))


def join_parts(digests: pa.Table) -> pa.Table:
    """Return DIGEST of a day, sorted, from digests of parts of its rates, each with all scrapes."""
    return _sort(_run(DIGEST, text.parts_text(), {"digests": digests}))


def merge_digests(digests: pa.Table) -> pa.Table:
    """Return USE from the rows of DIGEST of some days."""
    return _run(USE, text.merged_text(), {"digests": digests})


def find_delays(rates: pa.Table, scrapes: pa.Table, shares: pa.Table, step: int) -> pa.Table:
    """Return DELAYS from samples as in `digest_day`, and the series that share each limit.

    `shares` has `shared_by`, `key`, `user_name`, `client_id`, `rate_limit`, `present_limit`.
    """
    views = {"rates": _rename(rates), "scrapes": scrapes, "shares": shares}
    return _run(DELAYS, text.delays_text(step), views)


def _sort(digest: pa.Table) -> pa.Table:
    order = ("key", "broker", "user_name", "client_id", "bucket")
    return digest.sort_by([(name, "ascending") for name in order])


def _rename(rates: pa.Table) -> pa.Table:
    """Return samples with a name of the user's column that SQL accepts."""
    return rates.rename_columns({"user": "user_name"})


def _run(table: Table[Any], sql: str, views: Mapping[str, pa.Table]) -> pa.Table:
    with interruptible(), duckdb.connect() as db:
        db.execute("CREATE MACRO unix_millis(moment) AS epoch_ms(moment)")  # as in Spark
        for name, rows in views.items():
            db.register(name, rows)
        with timed(_log, logging.DEBUG, f"{table.name} in DuckDB"):
            return parquet.conform(table, db.sql(sql).to_arrow_table())
