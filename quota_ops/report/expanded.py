"""What files declare after lists, profiles and temporary limits are worked out."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

from quota_ops.model.entity import Entity
from quota_ops.model.quota import format_limit
from quota_ops.model.rows import DesiredRow, Key
from quota_ops.report.layout import Row, Screen, Span, Table, Tone, line

Changes = Mapping[Key, Sequence[tuple[str, DesiredRow | None]]]
"""What becomes of rows: each time (ISO 8601, UTC) and the row from then on, None for no limit."""


def expanded_objects(rows: Iterable[DesiredRow], cluster: str) -> list[dict[str, Any]]:
    """Return a JSON object for each row.

    cluster  the name of the cluster's folder
    entity   the names by type; null is the default
    key, value (in the key's own unit), file and line
    from     how the value follows from that line; null if the line declares it
    until    when the value ends or changes (ISO 8601, UTC); null if it stays
    """
    return [
        {
            "cluster": cluster,
            "entity": dict(Entity.parse(row.entity).user_first),
            "key": row.key,
            "value": row.value,
            "file": row.file,
            "line": row.line,
            "from": row.derivation,
            "until": row.until,
        }
        for row in rows
    ]


def expanded_table(rows: Iterable[DesiredRow]) -> Screen:
    """Return a table with a line for each row; an empty screen without any."""
    cells = tuple(
        Row(
            (
                Span(row.entity),
                Span(row.key),
                Span(format_limit(row.key, row.value)),
                Span(_from(row), Tone.CONTEXT),
            )
        )
        for row in rows
    )
    return (Table(("entity", "key", "limit", "from"), cells),) if cells else ()


def explanation_screen(rows: Sequence[DesiredRow], changes: Changes) -> Screen:
    """Return each entity with its limits, where they come from, and what becomes of them."""
    screen: list[Any] = []
    for entity, group in groupby(rows, key=lambda row: row.entity):
        screen.append(line(entity, Tone.STRONG))
        for row in group:
            screen.append(line(f"  {row.key}: {format_limit(row.key, row.value)}, {_from(row)}"))
            for time, later in changes.get(row.id, ()):
                value = format_limit(row.key, later and later.value)
                where = f", {_from(later)}" if later else ""
                screen.append(line(f"    from {time}: {value}{where}", Tone.CONTEXT))
    return screen


def _from(row: DesiredRow) -> str:
    return ": ".join(filter(None, (f"{row.file}:{row.line}", row.derivation)))
