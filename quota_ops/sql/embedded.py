"""The engine inside the process, DuckDB; it also judges what Spark has found to differ."""

import logging
import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from itertools import starmap
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import duckdb
import pyarrow as pa
from msgspec import Struct

from quota_ops.model.history.history import DRIFTS, UNSENT
from quota_ops.model.moment import timed
from quota_ops.model.quotas.difference import HISTORY_KINDS
from quota_ops.model.quotas.rows import OverrideRow
from quota_ops.model.quotas.tables import CLUSTERS, DESIRED, HOLDS, OVERRIDES, Table
from quota_ops.model.runs.outcome import ATTEMPTED
from quota_ops.precedence.overrides import DeclaredQuota, OtherQuota, find_overrides
from quota_ops.sql import text
from quota_ops.sql.job import RESULTS, SIDES, ComparedRun
from quota_ops.store.places import parquet
from quota_ops.store.places.numbered_files import read_file
from quota_ops.store.places.place import Place

_log = logging.getLogger(__name__)
_INTERRUPTED = "Query interrupted"
_idle: dict[int, list[duckdb.DuckDBPyConnection]] = {}
"""What no block uses, by the id of the process: a fork has no threads of its parent."""
_KEPT = 32 * 2**20
"""By how many bytes a process may have grown with a DuckDB that it keeps."""


class EmbeddedEngine(Struct):
    """Runs the SQL on DuckDB; starts in milliseconds and needs no Java."""

    kept: Mapping[Any, Any] = {}
    """The tables of a single run that this process has, by their declaration; others are read."""

    def diff(self, runs: Sequence[ComparedRun]) -> None:
        """Write the tables RESULTS to each run folder."""
        for run in runs:
            sides = {table: run.folder / table.file for table in SIDES}
            for table, found in zip(RESULTS, self.decide(sides), strict=True):
                rows = parquet.conform(table, found, table.name)
                (run.folder / table.file).replace(parquet.to_bytes(table, rows))

    def decide(self, sides: Mapping[Table[Any], Place]) -> tuple[pa.Table, ...]:
        """Return the tables RESULTS, computed from the file of each side."""
        with open_database() as db:
            for table in SIDES:
                if table in self.kept:
                    db.register(table.name, self.kept[table])
                else:
                    _register(db, table, sides[table])
            db.execute(f"CREATE VIEW compared AS {text.read_sql('compare')}")
            return _judge(db)


def judge(compared: pa.Table, sides: Mapping[Table[Any], Place]) -> tuple[pa.Table, ...]:
    """Return RESULTS of what compare.sql returned on another engine, with the files it compared."""
    with open_database() as db:
        db.register("compared", compared)
        for table in (HOLDS, CLUSTERS):
            _register(db, table, sides[table])
        return _judge(db, sides[DESIRED])


def _register(db: duckdb.DuckDBPyConnection, table: Table[Any], place: Place) -> None:
    db.register(table.name, parquet.from_bytes(table, read_file(place), str(place)))


def _judge(db: duckdb.DuckDBPyConnection, unread: Place | None = None) -> tuple[pa.Table, ...]:
    """Return RESULTS of the table `compared`; `unread` is the file of `desired`, if not read."""
    with timed(_log, logging.DEBUG, "diff.sql in DuckDB"):
        db.execute(f"CREATE TABLE differences AS {text.read_sql('diff')}")
    db.execute(f"CREATE TABLE others AS {text.OTHER_QUOTAS}")
    others = [OtherQuota(*row) for row in db.execute("FROM others").fetchall()]
    rows: list[OverrideRow] = []
    if any(other.side for other in others):
        with timed(_log, logging.DEBUG, "overrides"):
            if unread is not None:
                _register(db, DESIRED, unread)
            declared = db.execute(text.DECLARED_QUOTAS).fetchall()
            rows = find_overrides(others, starmap(DeclaredQuota, declared))
    overrides = parquet.from_rows(OVERRIDES, rows)
    db.register("overrides", overrides)
    with timed(_log, logging.DEBUG, "batches.sql"):
        return overrides, db.sql(text.batches_text()).to_arrow_table()


def fold_history(
    history: pa.Table,
    views: Iterable[str],
    entities: Collection[str] | None = None,
    *,
    and_drifted: bool = False,
    newest: Mapping[str, object] | None = None,
) -> dict[str, pa.Table]:
    """Return views of the history, such as `quotas`, by name, from rows of HISTORY.

    With entities, from the rows of all runs and of these entities, and with `and_drifted` those of
    each entity that ever drifted. With the parameters of history_changes.sql as
    `newest`, also `changes`: the rows that the newest changes need.
    """
    with open_database() as db:
        db.register("every_history", history)
        db.execute(
            "CREATE TABLE history AS FROM every_history "
            "WHERE $every OR entity IS NULL OR entity IN (SELECT UNNEST($entities::TEXT[])) OR "
            "$and_drifted AND entity IN ("
            "SELECT entity FROM every_history WHERE LIST_CONTAINS($kinds, kind))",
            {
                "every": entities is None,
                "entities": [*(entities or ())],
                "and_drifted": and_drifted,
                "kinds": [*HISTORY_KINDS],
            },
        )
        with timed(_log, logging.DEBUG, "the history in DuckDB"):
            for view in ("ends", "drifts"):
                db.execute(f"CREATE TABLE {view} AS {text.history_text(view)}")
            found = {view: db.sql(text.history_text(view)).to_arrow_table() for view in views}
            if newest is not None:
                values = {**newest, "sent": [*ATTEMPTED], "unsent": [*UNSENT]}
                changes = db.sql(text.read_sql("history_changes"), params=values)
                found["changes"] = changes.to_arrow_table()
            return found


def count_drifts(history: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Return DAYS, without repairs, and QUOTA_DRIFTS of rows of HISTORY, those of all clusters.

    To find when each drift began and ended takes twenty times as long.
    """
    with open_database() as db:
        db.register("history", history)
        db.register("drifts", parquet.from_rows(DRIFTS, []))
        with timed(_log, logging.DEBUG, "the history of all clusters in DuckDB"):
            db.execute(f"CREATE TABLE ends AS {text.history_text('ends')}")
            found = [db.sql(text.history_text(view)).to_arrow_table() for view in ("days", "fleet")]
            return found[0], found[1]


def number_batches(differences: pa.Table) -> pa.Table:
    """Return a table DIFFERENCES, for example that of `alter`, with the numbers of its batches."""
    with open_database() as db:
        db.from_arrow(differences).create_view("differences")
        db.register("overrides", parquet.from_rows(OVERRIDES, []))
        return db.sql(text.batches_text()).to_arrow_table()


@contextmanager
def open_database(**settings: str | int) -> Iterator[duckdb.DuckDBPyConnection]:
    """Yield a database in memory, with DuckDB's settings; Ctrl-C raises KeyboardInterrupt.

    Data that does not fit into memory goes to a separate temporary folder: DuckDB's default is
    `.tmp` in the working directory. Without settings, it is in a DuckDB that this process started
    before, if one is idle: a start takes 30 ms of CPU. One that took much memory is closed, since
    it returns memory only then.
    """
    idle = [] if settings else _idle.setdefault(os.getpid(), [])
    resident = _read_resident()
    try:
        with TemporaryDirectory(prefix="quota-ops-") as folder, ExitStack() as ending:
            try:  # without a check before, because threads share the list
                started = ending.enter_context(idle.pop())
            except IndexError:
                started = ending.enter_context(duckdb.connect(config={**settings}))
            started.execute("SET temp_directory = $1", [folder])
            started.execute("ATTACH ':memory:' AS own")
            with started.cursor() as db:
                db.execute("USE own")
                yield db
            started.execute("DETACH own")
            has_spilled = any(Path(folder).iterdir())  # it would keep the folder
            if not (settings or has_spilled or _read_resident() - resident > _KEPT):
                ending.pop_all()
                idle.append(started)
    except RuntimeError as error:
        if str(error) == _INTERRUPTED:
            raise KeyboardInterrupt from error
        raise


def _read_resident() -> int:
    """Return the resident memory of this process in bytes; 0 where Linux' /proc is missing."""
    try:
        pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
    except OSError:
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")


def read_csv(
    db: duckdb.DuckDBPyConnection, files: str, columns: Iterable[str]
) -> duckdb.DuckDBPyRelation:
    """Return the rows of CSV files (RFC 4180) with these columns, all of them texts."""
    return db.read_csv(
        files,
        columns=dict.fromkeys(columns, "VARCHAR"),
        header=True,
        auto_detect=False,
        delimiter=",",
        quotechar='"',
        escapechar='"',
    )
