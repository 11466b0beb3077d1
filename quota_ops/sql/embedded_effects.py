"""The effects of a change on the clients of an inventory, by DuckDB."""

import logging
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Timer

import duckdb
import pyarrow as pa

from quota_ops.model.errors import InvalidInput
from quota_ops.model.moment import timed
from quota_ops.model.plans.client_effects import (
    CLIENT_EFFECTS,
    INVENTORY,
    OWNER_EFFECTS,
    OwnerEffects,
)
from quota_ops.model.quotas.quota import CLIENT_KEYS
from quota_ops.sql import text
from quota_ops.sql.client_effects import UNLIMITED_KEYS
from quota_ops.sql.embedded import open_database, read_csv
from quota_ops.sql.inventory import (
    Inventory,
    explain_no_client,
    explain_wrong_clients,
    measure_parquet,
)
from quota_ops.store.places import parquet
from quota_ops.store.places.place import Place

_log = logging.getLogger(__name__)
MEMORY = "2GB"
"""The most memory that DuckDB takes for an inventory."""
DISK = "8GB"
"""The most space that DuckDB takes on the disk for what does not fit into its memory."""
MOST_BYTES = 2 * 2**30
"""The most bytes of the files of an inventory, before and after decompression."""
MOST_CLIENTS = 10_000_000
"""The most clients that DuckDB reads; a small file of Parquet may have a billion."""
MOST_SECONDS = 300.0
"""How long DuckDB may take to read an inventory."""


class EmbeddedEffects:
    """Compares the limits of the clients of an inventory on DuckDB.

    `wanted` may also be `text.EVERY`: then the limits that stay have rows too.
    """

    def __init__(self, wanted: str = text.CHANGED) -> None:
        self._wanted = wanted

    def compare_limits(
        self, inventory: Inventory, before: pa.Table, after: pa.Table, to: Place
    ) -> tuple[OwnerEffects, ...]:
        """Write CLIENT_EFFECTS below `to`, sorted; return the numbers by owner."""
        with _open_inventory(inventory) as (db, folder):
            db.register("quota_keys", UNLIMITED_KEYS)
            db.register("limits_before", before)
            db.register("limits_after", after)
            part = folder / "part-00000.parquet"
            with timed(_log, logging.DEBUG, "the effects in DuckDB"):
                db.execute(f"CREATE VIEW classified AS {text.read_sql('client_classes')}")
                db.execute(f"CREATE TABLE classes AS {text.read_sql('classes')}")
                db.execute(f"CREATE TABLE class_effects AS {text.class_effects_text()}")
                db.execute(f"CREATE TABLE used AS {text.client_usage_text(self._wanted)}")
                effects = text.client_effects_text(self._wanted)
                found = db.sql(effects).order("user_name, client_id, key")
                names = zip(found.columns, CLIENT_EFFECTS.names, strict=True)
                spelled = found.project(", ".join(f'{old} AS "{new}"' for old, new in names))
                spelled.write_parquet(str(part))
                db.execute(
                    f'CREATE VIEW client_effects AS SELECT *, "user" AS user_name, '  # noqa: S608 - our path
                    f"\"client-id\" AS client_id FROM '{part}'"
                )
                owners = db.sql(text.read_sql("owner_effects")).to_arrow_table()
            (to / part.name).replace(part.read_bytes())
        return tuple(parquet.read_rows(OWNER_EFFECTS, parquet.conform(OWNER_EFFECTS, owners)))


def read_inventory(inventory: Inventory) -> pa.Table:
    """Return the clients as INVENTORY.

    Raises InvalidInput for a line that is none, or without any.
    """
    with _open_inventory(inventory) as (db, _):
        rows = db.table("inventory").to_arrow_table().rename_columns(list(INVENTORY.names))
        if not rows.num_rows:
            raise explain_no_client(inventory)
        return parquet.conform(INVENTORY, rows)


@contextmanager
def _open_inventory(inventory: Inventory) -> Iterator[tuple[duckdb.DuckDBPyConnection, Path]]:
    """Yield a database with the table inventory, and its folder; large tables move to the disk."""
    with (
        TemporaryDirectory(prefix="quota-ops-") as name,
        open_database(memory_limit=MEMORY, max_temp_directory_size=DISK) as db,
    ):
        _create_inventory(db, inventory, Path(name))
        yield db, Path(name)


def _create_inventory(db: duckdb.DuckDBPyConnection, inventory: Inventory, folder: Path) -> None:
    """Create the table inventory; NotClients for the first line that is not a client.

    InvalidInput if it has more bytes or clients, or takes longer, than DuckDB may read.
    """
    _check_size(inventory)
    clock = Timer(MOST_SECONDS, db.interrupt)
    clock.start()
    try:
        with timed(_log, logging.DEBUG, "the inventory in DuckDB"):
            lines = _read(db, inventory, _gather_files(inventory, folder))
            lines.limit(MOST_CLIENTS + 1).create_view("lines")
            if inventory.suffix == ".parquet":
                _check_cells(inventory, lines)
            db.execute(f"CREATE TABLE inventory AS {text.inventory_text()}")
            if db.table("inventory").shape[0] > MOST_CLIENTS:
                raise _refuse(inventory, f"lists more than {MOST_CLIENTS:,} clients")
            ((wrong, *repeated),) = db.execute(text.wrong_clients_text()).fetchall()
    except duckdb.OutOfMemoryException as error:
        raise _refuse(
            inventory, f"takes more than {MEMORY} of memory and {DISK} of disk"
        ) from error
    except duckdb.InterruptException as error:
        if clock.is_alive():  # a person interrupted it
            raise
        raise _refuse(inventory, f"takes longer than {MOST_SECONDS:g} s to read") from error
    except duckdb.Error as error:
        _log.debug("DuckDB cannot read the inventory: %s", error)
        raise explain_wrong_clients(inventory, None) from error
    finally:
        clock.cancel()
    if wrong or repeated[0] is not None:
        raise explain_wrong_clients(inventory, tuple(repeated) if repeated[0] is not None else None)


def _check_size(inventory: Inventory) -> None:
    if inventory.bytes > MOST_BYTES:
        raise _refuse(inventory, f"has {inventory.bytes:,} bytes; at most {MOST_BYTES:,} are read")
    if inventory.suffix != ".parquet":
        return
    rows, size = measure_parquet(inventory)
    if rows > MOST_CLIENTS:
        raise _refuse(inventory, f"lists more than {MOST_CLIENTS:,} clients")
    if size > MOST_BYTES:
        raise _refuse(inventory, f"decodes to {size:,} bytes; at most {MOST_BYTES:,} are read")


def _check_cells(inventory: Inventory, lines: duckdb.DuckDBPyRelation) -> None:
    """Raise InvalidInput if the cells have too many bytes: a dictionary has each only once.

    DuckDB refers to the dictionary while it reads, and copies a cell only into a table.
    """
    sizes = (
        f"COALESCE(SUM(strlen({name}::VARCHAR)), 0)"
        for name, kind in zip(lines.columns, lines.types, strict=True)
        if kind != "DOUBLE" or name not in CLIENT_KEYS
    )
    ((size,),) = lines.aggregate(" + ".join(sizes)).fetchall()
    if size > MOST_BYTES:
        raise _refuse(inventory, f"decodes to {size:,} bytes; at most {MOST_BYTES:,} are read")


def _refuse(inventory: Inventory, why: str) -> InvalidInput:
    return InvalidInput(
        f"the inventory {inventory.place} {why}",
        "List fewer clients, for example those of one cluster, or count larger inventories with "
        "the Spark job compare_effective_limits.",
    )


def _gather_files(inventory: Inventory, folder: Path) -> str:
    """Return a pattern of the files for DuckDB, which takes `*` and `[` in any path as one.

    A local file gets a link with a plain name, and one in a bucket a copy.
    """
    for number, file in enumerate(inventory.files):
        path = folder / f"{number:05d}{inventory.suffix}"
        if "://" in str(file):
            with file.open() as source, path.open("wb") as copy:
                shutil.copyfileobj(source, copy)
        else:
            path.symlink_to(str(file))
    return f"{folder}/*{inventory.suffix}"


def _read(
    db: duckdb.DuckDBPyConnection, inventory: Inventory, files: str
) -> duckdb.DuckDBPyRelation:
    if inventory.suffix == ".csv":
        read = read_csv(db, files, inventory.columns)
    elif inventory.suffix == ".jsonl":
        columns = dict.fromkeys(inventory.columns, "VARCHAR")
        read = db.read_json(files, format="newline_delimited", columns=columns)
    else:
        read = db.read_parquet(files)
    spelled = {"user": "user_name", "client-id": "client_id"}
    cells = {
        name: f'"{name}"' if name in inventory.columns else "CAST(NULL AS VARCHAR)"
        for name in INVENTORY.names
    }
    return read.project(
        ", ".join(f"{cell} AS {spelled.get(name, name)}" for name, cell in cells.items())
    )
