"""Files of clients, in each format that resolve accepts."""

import csv
import json
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from quota_ops.model.quotas.entity import CLIENT_ID, USER

Client = tuple[str | None, str | None]
"""A user and a client id."""


def write_csv(place: Path, clients: Sequence[Client]) -> None:
    """Write clients as a CSV file; a missing name is an empty cell."""
    with place.open("w", encoding="utf-8", newline="") as out:
        csv.writer(out).writerows(
            [("team", USER, CLIENT_ID), *(("x", *client) for client in clients)]
        )


def write_jsonl(place: Path, clients: Sequence[Client]) -> None:
    """Write clients as JSON Lines; a missing name is null."""
    lines = [json.dumps({USER: user, CLIENT_ID: client, "team": "x"}) for user, client in clients]
    place.write_text("\n".join(lines), encoding="utf-8")


def write_parquet(place: Path, clients: Sequence[Client]) -> None:
    """Write clients as a Parquet file."""
    users, client_ids = zip(*clients, strict=True)
    columns = {"team": ["x"] * len(clients), USER: users, CLIENT_ID: client_ids}
    pq.write_table(
        pa.table({name: pa.array(values, pa.string()) for name, values in columns.items()}), place
    )


WRITERS = {"csv": write_csv, "jsonl": write_jsonl, "parquet": write_parquet}
