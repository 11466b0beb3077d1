"""Digests of use, and the delays that limits would have caused, by DuckDB."""

import logging
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import duckdb
import pyarrow as pa

from quota_ops.model.errors import InvalidInput
from quota_ops.model.moment import timed
from quota_ops.model.quotas.quota import MEASURED_KEYS
from quota_ops.model.quotas.tables import Table, derive_table
from quota_ops.model.usage.digest import (
    BASE,
    BUCKETS,
    DELAYS,
    DIGEST,
    SHARES,
    USE,
    DelayRow,
    DigestRow,
    ShareRow,
    UseRow,
)
from quota_ops.model.usage.seen import Run, SeenBrokers
from quota_ops.model.usage.series import time_of
from quota_ops.sql import text
from quota_ops.sql.embedded import open_database
from quota_ops.store.places import parquet
from quota_ops.store.places.numbered_files import read_file
from quota_ops.store.places.place import Place

_log = logging.getLogger(__name__)
_ONE_THREAD: Mapping[str, str | int] = {"threads": 1}
"""A second thread would take the memory of the first again, for its own sums."""
_MEMORY = "250MB"
"""The most memory that DuckDB takes to add up days; what does not fit goes to the disk. 60,000
clients of one broker do not fit into 100 MB."""
_REMEDY = "Run quota-ops record: it reads days again whose file is damaged."


def digest_part(
    rates: pa.Table, scrapes: pa.Table, delayed: pa.Table, day: str, step: int
) -> pa.Table:
    """Return BUCKETS of samples of a day, those of some series or of all.

    `rates` has `time`, `broker`, `key`, `user_name`, `client_id`, `value`; `scrapes` has `time`,
    `broker`, `up`; `delayed` has `broker`, `key`, `user_name`, `client_id` of the series that were
    throttled. `step` is how many seconds pass between two scrapes at most.
    """
    views = {"rates": rates, "scrapes": scrapes, "delayed": delayed}
    return _run(BUCKETS, text.digest_text(day, step), views)


def pack_series(buckets: pa.Table) -> pa.Table:
    """Return DIGEST of the series in BUCKETS of a day, without when brokers were seen."""
    return _run(DIGEST, text.read_sql("usage_packed"), {"buckets": buckets})


def add_seen(day: str, parts: Sequence[pa.Table], seen: SeenBrokers) -> pa.Table:
    """Return DIGEST of a day from that of its series in some parts.

    `seen` are the times in which its brokers were seen, in seconds since 1970.
    """
    midnight = int(time_of(day).start.timestamp())
    keys = {key for part in parts for key in part["key"].unique().to_pylist()}
    rows = [
        DigestRow(day, broker, key, None, None, 0, None, (), None, False, edges)
        for key in sorted(keys)
        for broker, runs in seen.items()
        for edges in [tuple(second - midnight for run in runs for second in run)]
    ]
    of_brokers = parquet.from_rows(DIGEST, rows).cast(parquet.arrow_schema(DIGEST))
    return pa.concat_tables([of_brokers, *parts])


class RecordedSeries(NamedTuple):
    """The names by which brokers counted the use of a key, and a part of the days with it."""

    key: str
    user_name: str | None
    client_id: str | None
    part: int


class SpanRow(NamedTuple):
    """A part of the days of a series, and the span it belongs to.

    From the rate `surely` on its use is at the limit, below `perhaps` it is not; None if no limit
    is known.
    """

    key: str
    user_name: str | None
    client_id: str | None
    part: int
    span: int
    surely: float | None = None
    perhaps: float | None = None


_SPANS = derive_table("spans", SpanRow)


class NamesRow(NamedTuple):
    """The names of a series, whose days are wanted."""

    user_name: str | None
    client_id: str | None


_NAMES = derive_table("names", NamesRow)


class SummedDays(NamedTuple):
    """The use of some days, added up in parts: queries to it, for the time of a block."""

    db: duckdb.DuckDBPyConnection

    def list_series(self, key: str | None = None) -> list[RecordedSeries]:
        """Return each series of a key, or of all, and each part of the days that has it, sorted.

        One without both names is use of clients that are not known.
        """
        rows = self.db.execute(
            "SELECT DISTINCT key, user_name, client_id, part FROM series"
            " WHERE (user_name IS NOT NULL OR client_id IS NOT NULL OR highest > 0)"
            " AND key = COALESCE($1, key) ORDER BY ALL",
            [key],
        ).fetchall()
        return list(map(RecordedSeries._make, rows))

    def list_highest(self) -> list[tuple[str, str | None, str | None, float, bool]]:
        """Return the key and names of each series, its highest use, whether it was throttled."""
        return self.db.execute(
            "SELECT key, user_name, client_id, MAX(highest), BOOL_OR(throttled) FROM series"
            " WHERE is_number AND (user_name IS NOT NULL OR client_id IS NOT NULL)"
            " GROUP BY ALL ORDER BY ALL"
        ).fetchall()

    def read_seen(self) -> dict[str, dict[str, list[Run]]]:
        """Return when each broker was seen, in seconds since 1970, by key."""
        rows = self.db.execute(
            "SELECT key, broker, EPOCH(CAST(day AS TIMESTAMP)), seen FROM digests"
            " WHERE user_name IS NULL AND client_id IS NULL AND bucket IS NULL ORDER BY day"
        ).fetchall()
        found: dict[str, dict[str, list[Run]]] = {}
        for key, broker, midnight, seconds in rows:
            runs = found.setdefault(key, {}).setdefault(broker, [])
            edges = [int(midnight) + second for second in seconds]
            runs += zip(edges[::2], edges[1::2], strict=True)
        return found

    def measure(
        self, spans: Sequence[SpanRow], measured: Sequence[UseRow] = ()
    ) -> Iterator[UseRow]:
        """Yield the use of the spans, a row for each broker, with what was measured in others."""
        self.db.register("spans", parquet.from_rows(_SPANS, spans))
        self.db.register("measured", parquet.from_rows(USE, measured))
        for batch in self.db.sql(text.read_sql("usage_merged", base=BASE)).to_arrow_reader(10_000):
            rows = parquet.conform(USE, pa.Table.from_batches([batch]))
            yield from parquet.read_rows(USE, rows)


@contextmanager
def open_digests(
    places: Sequence[Place],
    parts: Mapping[str, int],
    wanted: Collection[tuple[str | None, str | None]] | None = None,
) -> Iterator[SummedDays]:
    """Add up digests. `parts` maps each day to the number of the part that it belongs to.

    With `wanted`, only series with these names count. Raises InvalidInput if a file is damaged.
    """
    with (
        TemporaryDirectory(prefix="quota-ops-") as folder,
        open_database(**_ONE_THREAD, memory_limit=_MEMORY) as db,
    ):
        days = pa.table({"day": [*parts], "part": pa.array([*parts.values()], pa.int32())})
        db.register("parts", days)
        db.register("no_digests", parquet.from_rows(DIGEST, []))
        files = [str(_link(place, Path(folder))) for place in places]
        digests = db.read_parquet(files) if files else db.table("no_digests")
        digests.create_view("digests" if wanted is None else "all_digests")
        if wanted is not None:
            db.register("wanted", parquet.from_rows(_NAMES, [*wanted]))
            db.execute(
                "CREATE VIEW digests AS SELECT d.* FROM all_digests AS d SEMI JOIN wanted AS w"
                " ON d.user_name IS NOT DISTINCT FROM w.user_name"
                " AND d.client_id IS NOT DISTINCT FROM w.client_id"
            )
        try:
            with timed(_log, logging.DEBUG, "the sums of digests in DuckDB"):
                db.execute("CREATE TABLE sums (series UBIGINT, bucket INT, seconds INT)")
                for key in MEASURED_KEYS:
                    db.execute(f"INSERT INTO sums {text.read_sql('usage_sums', key=key)}")
                db.execute(f"CREATE TABLE series AS {text.read_sql('usage_series')}")
        except duckdb.IOException as error:
            raise InvalidInput(
                f"a recorded day of {places[0].parent} is damaged: {error}", _REMEDY
            ) from error
        yield SummedDays(db)


def _link(place: Place, folder: Path) -> Path:
    """Return a plain path of a digest, because DuckDB takes `*` in a path as any text.

    A local file gets a link, and one in a bucket a copy.
    """
    try:
        parquet.check_columns(DIGEST, parquet.columns(place), str(place))
    except InvalidInput as error:
        raise InvalidInput(error.message, error.remedy or _REMEDY) from error
    path = folder / place.name
    if "://" in str(place):
        path.write_bytes(read_file(place))
    else:
        path.symlink_to(Path(str(place)).absolute())
    return path


def find_delays(
    rates: pa.Table, scrapes: pa.Table, shares: Sequence[ShareRow], step: int
) -> list[DelayRow]:
    """Return a row for each limit and broker, from samples as in `digest_part`."""
    views = {"rates": rates, "scrapes": scrapes, "shares": parquet.from_rows(SHARES, shares)}
    return list(
        parquet.read_rows(DELAYS, _run(DELAYS, text.read_sql("usage_delays", step=step), views))
    )


def _run(table: Table[Any], sql: str, views: Mapping[str, pa.Table]) -> pa.Table:
    with open_database() as db:
        db.execute("CREATE MACRO unix_millis(moment) AS epoch_ms(moment)")  # as in Spark
        for name, rows in views.items():
            db.register(name, rows)
        with timed(_log, logging.DEBUG, f"{table.name} in DuckDB"):
            return parquet.conform(table, db.sql(sql).to_arrow_table())
