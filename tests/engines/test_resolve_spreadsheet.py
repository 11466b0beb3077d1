"""Limits of many clients as CSV, which people open in a spreadsheet."""

import csv
from pathlib import Path

from quota_ops.model.quotas.entity import USER, Entity
from quota_ops.model.quotas.rows import StoredQuota
from quota_ops.precedence.tables import RESOLVED
from quota_ops.sql.resolve import Resolver, resolve_clients
from tests.engines.client_files import Client, write_csv
from tests.engines.test_resolve_clients import everything, expected


def test_a_table_for_people_who_open_csv(engine: Resolver, tmp_path: Path) -> None:
    """A .csv destination has the same rows: one file, or a folder of parts from Spark."""
    stored, clients = everything()
    write_csv(tmp_path / "clients.csv", clients)
    place = tmp_path / "resolved.csv"

    resolve_clients(engine, stored, tmp_path / "clients.csv", place)

    parts = place.glob("part-*.csv") if place.is_dir() else [place]
    said = [
        tuple("" if cell is None else str(cell) for cell in row)
        for row in expected(stored, clients)
    ]
    assert sorted(rows_of(*parts)) == sorted(said)


def test_no_name_is_a_formula(engine: Resolver, tmp_path: Path) -> None:
    """A spreadsheet shows a name that starts like a formula, and does not evaluate it."""
    hostile = ["=1+1", "+1", "-1", "@sum(a1)", "\tx", "\rx"]
    clients: list[Client] = [(name, "plain=1") for name in hostile]
    write_csv(tmp_path / "clients.csv", clients)
    place = tmp_path / "resolved.csv"
    stored = [StoredQuota(Entity.of({USER: None}), "producer_byte_rate", 1.0)]

    resolve_clients(engine, stored, tmp_path / "clients.csv", place)

    parts = place.glob("part-*.csv") if place.is_dir() else [place]
    seen = {(row[0], row[1], row[7]) for row in rows_of(*parts) if row[3]}
    assert seen == {(f"'{name}", "plain=1", f"'{name}") for name in hostile}


def rows_of(*places: Path) -> list[tuple[str, ...]]:
    """Return the rows of CSV files, each under the columns of RESOLVED."""
    rows = []
    for place in places:
        with place.open(encoding="utf-8", newline="") as lines:
            header, *values = csv.reader(lines)
        assert tuple(header) == RESOLVED.names
        rows += [tuple(row) for row in values]
    return rows
