"""Digests of use in the run store: use/CLUSTER_ID/2026-11-25.parquet, a table a day.

A day without a file was not read. It is unknown, and never counts as a day without use.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa

from quota_ops.model.errors import InvalidInput
from quota_ops.model.usage.digest import DIGEST
from quota_ops.store.places import parquet
from quota_ops.store.places.numbered_files import read_file
from quota_ops.store.places.place import Place
from quota_ops.store.places.run_store import RunStore

_FILE = re.compile(r"(?P<day>\d{4}-\d{2}-\d{2})\.parquet")
_NUMBERS = {"bucket", "highest"}
_SMALL: dict[str, Any] = {
    "compression": "zstd",
    "compression_level": 19,
    "use_dictionary": [*({*DIGEST.names} - _NUMBERS), "seconds.list.element"],
    "column_encoding": dict.fromkeys(_NUMBERS, "BYTE_STREAM_SPLIT"),
    # So few that most groups have less than 256 different `seconds`, of a byte each.
    "group_rows": 4_000,
}
"""How a digest is written: 30 % smaller than by default."""
_SORTED = ("key", "broker", "idle", "highest", "user_name", "client_id")
"""The order of its rows: clients with similar numbers beside each other take less space."""
SETTLED = timedelta(minutes=10)
"""How long after the end of a day its last samples may arrive."""


def folder_of(store: RunStore, cluster_id: str) -> Place:
    """Return the folder of a cluster's digests."""
    return store.of_cluster(cluster_id).digests


def list_days(store: RunStore, cluster_id: str) -> list[str]:
    """Return the days that have a digest, sorted."""
    found = map(_FILE.fullmatch, folder_of(store, cluster_id).list())
    return sorted(name["day"] for name in found if name)


def list_past_days(now: datetime, count: int) -> list[str]:
    """Return the last complete days in UTC, sorted, by ISO 8601."""
    today = (now.astimezone(UTC) - SETTLED).date()
    return [f"{today - timedelta(days=ago)}" for ago in range(count, 0, -1)]


def find_missing(store: RunStore, cluster_id: str, days: Sequence[str]) -> list[str]:
    """Return which of these days have no digest that can be read."""
    digests = find_digests(store, cluster_id, days)
    readable = digests.keys() - find_damaged(digests)
    return [day for day in days if day not in readable]


def write_digest(store: RunStore, cluster_id: str, day: str, digest: pa.Table) -> Place:
    """Write the digest of a day, in place of an earlier one."""
    place = folder_of(store, cluster_id) / f"{day}.parquet"
    rows = digest.cast(parquet.arrow_schema(DIGEST))  # shared texts cannot be sorted
    ordered = rows.sort_by([(name, "ascending") for name in _SORTED])
    place.replace(parquet.to_bytes(DIGEST, ordered, **_SMALL))
    return place


def find_digests(store: RunStore, cluster_id: str, days: Sequence[str]) -> dict[str, Place]:
    """Return the file of each of these days that has one, by day, sorted."""
    known = {*days}.intersection(list_days(store, cluster_id))
    return {day: folder_of(store, cluster_id) / f"{day}.parquet" for day in sorted(known)}


def find_damaged(digests: Mapping[str, Place]) -> dict[str, str]:
    """Return why a digest cannot be read, by day, for those that cannot."""
    damaged: dict[str, str] = {}
    for day, place in digests.items():
        try:
            parquet.from_bytes(DIGEST, read_file(place), str(place))
        except InvalidInput as error:
            damaged[day] = error.message
    return damaged


def list_ended(folder: Place, before: datetime) -> Iterator[tuple[Place]]:
    """Yield each digest of a cluster whose day ended before a moment."""
    for name in folder.list():
        found = _FILE.fullmatch(name)
        if found and found["day"] < f"{before:%Y-%m-%d}":
            yield (folder / name,)
