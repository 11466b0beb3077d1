"""Resolve the limits of many clients in one pass: clients and stored quotas to one table."""

import csv
import json
from collections.abc import Iterable
from io import TextIOWrapper
from pathlib import Path, PurePath
from tempfile import TemporaryDirectory
from typing import Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from quota_ops.model.errors import InvalidInput
from quota_ops.model.quotas.quota import CLIENT_KEYS
from quota_ops.model.quotas.rows import StoredQuota
from quota_ops.precedence.tables import CLIENTS, LIMITS, RESOLVED, ResolvedRow, list_limits
from quota_ops.store.places import parquet
from quota_ops.store.places.run_store import open_place

Address = Path | str
"""A path or, for Spark, also s3://BUCKET/KEY."""
CLIENT_FILES = (".csv", ".jsonl", ".parquet")
RESOLVED_FILES = (".parquet", ".csv")
QUOTA_KEYS = pa.table({"key": list(CLIENT_KEYS)})


class Resolver(Protocol):
    """An engine that runs resolve.sql over a file of clients."""

    def resolve(self, clients: Address, limits: pa.Table, destination: Address) -> None:
        """Write RESOLVED of the clients; the suffixes of both files name their formats."""
        ...


def resolve_clients(
    engine: Resolver, stored: Iterable[StoredQuota], clients: Address, destination: Address
) -> None:
    """Write the limits that apply to each client of a file, one row for each key, in any order.

    Memory does not grow with the number of clients. DuckDB writes a file, and Spark a folder of
    parts. Raises InvalidInput when a file cannot be read, has an unsupported format or does not
    match its suffix, and when the destination would replace the file of clients.
    """
    check_destination(destination, clients)
    _check_clients(clients)
    engine.resolve(clients, parquet.from_rows(LIMITS, list_limits(stored)), destination)


def find_resolved_rows(
    engine: Resolver, stored: Iterable[StoredQuota], clients: Path
) -> list[ResolvedRow]:
    """Return the rows of RESOLVED for a few clients, in order of user, client id and key."""
    with TemporaryDirectory(prefix="quota-ops-") as folder:
        destination = Path(folder) / RESOLVED.file
        resolve_clients(engine, stored, clients, destination)
        rows = parquet.conform(RESOLVED, pq.read_table(destination), RESOLVED.name)
    return sorted(parquet.read_rows(RESOLVED, rows))


def check_destination(destination: Address, clients: Address) -> None:
    """Raise InvalidInput for an unsupported format, or if it would replace the file of clients."""
    if find_suffix(destination) not in RESOLVED_FILES:
        raise InvalidInput(f"{destination} must end in one of {', '.join(RESOLVED_FILES)}.")
    if _is_replaced(clients, destination):
        raise InvalidInput(f"Writing {destination} would replace {clients}.", "Choose a new file.")


def _is_replaced(clients: Address, destination: Address) -> bool:
    """Return whether the clients are at the destination or in it: Spark replaces a folder."""
    if "://" in f"{clients}{destination}":
        return f"{clients}/".startswith(f"{destination}/")
    read = (Path(clients), *Path(clients).resolve().parents)
    return Path(destination).exists() and any(map(Path(destination).samefile, read))


def find_suffix(address: Address) -> str:
    """Return the suffix that names the format of a file, for example .csv."""
    return PurePath(address).suffix


def _check_clients(clients: Address) -> None:
    try:
        columns = column_names(clients)
    except (ValueError, AttributeError, RecursionError):
        raise InvalidInput(f"{clients} cannot be read as a {find_suffix(clients)} file.") from None
    except FileNotFoundError:
        raise InvalidInput(f"{clients} does not exist.") from None
    except OSError as error:
        raise InvalidInput(f"{clients} cannot be read: {error.strerror}") from error
    if missing := [name for name in CLIENTS.names if name not in columns]:
        raise InvalidInput(
            f"{clients} has no column {' and no '.join(missing)}.",
            f"It must have {' and '.join(CLIENTS.names)}; others are left alone.",
        )


def column_names(clients: Address) -> Iterable[str]:
    """Return the column names of a file of clients, read from its beginning."""
    suffix = find_suffix(clients)
    if suffix == ".parquet":
        return parquet.columns(open_place(clients))
    if suffix not in CLIENT_FILES:
        raise InvalidInput(f"{clients} must end in one of {', '.join(CLIENT_FILES)}.")
    with TextIOWrapper(open_place(clients).open(), encoding="utf-8", newline="") as lines:
        if suffix == ".csv":
            return next(csv.reader(lines), [])
        return dict(json.loads(next(lines, "{}")))
