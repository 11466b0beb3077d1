"""Many clients at once, from the command line."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from quota_ops.cli.console import TEXT, show_screen
from quota_ops.model.quota import UNLIMITED, format_limit
from quota_ops.model.rows import StoredQuota
from quota_ops.precedence.tables import RESOLVED
from quota_ops.report.screen import Row, Span, Table
from quota_ops.sql.resolve import Resolver, check_destination, resolve_clients, resolved_rows


def resolve_file(stored: Sequence[StoredQuota], clients: Path, asked: Mapping[str, Any]) -> None:
    """Resolve a file's clients into another file, or on the screen when none is named."""
    destination: Path | None = asked["destination"]
    if destination is not None:
        check_destination(destination, clients)
    if asked["engine"] == "spark":
        from quota_ops.sql.spark import SparkEngine, local_session

        with local_session([]) as spark:
            _resolve(SparkEngine(spark), stored, clients, destination, asked["output"])
        return
    from quota_ops.sql.embedded import EmbeddedEngine

    _resolve(EmbeddedEngine(), stored, clients, destination, asked["output"])


def _resolve(
    engine: Resolver,
    stored: Sequence[StoredQuota],
    clients: Path,
    destination: Path | None,
    output: str,
) -> None:
    if destination is not None:
        resolve_clients(engine, stored, clients, destination)
        click.echo(f"{destination}: what holds for each client of {clients}")
        return
    rows = resolved_rows(engine, stored, clients)
    if output != TEXT:
        for row in rows:
            click.echo(json.dumps(dict(zip(RESOLVED.names, row, strict=True)), ensure_ascii=False))
        return
    show_screen((Table(("user", "client id", "key", "limit", "set by"), tuple(map(_row, rows))),))


def _row(row: Sequence[Any]) -> Row:
    user, client_id, key, value, level, _, entity, *_shared = row
    limit = UNLIMITED if value is None else format_limit(key, value)
    cells = (user, client_id, key, limit, f"{entity} ({level})" if entity else "nobody")
    return Row(tuple(map(Span, cells)))
