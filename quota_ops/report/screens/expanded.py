"""The limits that files declare after lists, profiles and temporary limits are expanded."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from quota_ops.model.quotas.entity import Entity
from quota_ops.model.quotas.quota import format_limit
from quota_ops.model.quotas.rows import DesiredRow, Key
from quota_ops.model.text import command, counted, plural
from quota_ops.report.outline.layout import Line, Screen, Tone, line

Changes = Mapping[Key, Sequence[tuple[str, DesiredRow | None]]]
"""What becomes of rows: each time (ISO 8601, UTC) and the row from then on, None for no limit."""


def expanded_objects(rows: Iterable[DesiredRow], cluster: str) -> list[dict[str, Any]]:
    """Return a JSON object for each row.

    cluster  the name of the cluster's folder
    entity   the names by type; null is the default
    key, value (in the key's own unit), file and line
    from     how the value follows from that line; null if the line declares it
    until    when the value ends or changes (ISO 8601, UTC); null if it stays
    whole    the limit of the whole cluster of which value is a broker's share; null if it is none

    While the brokers that share a limit of the whole cluster are unknown, value is null.
    """
    return [
        {
            "cluster": cluster,
            "entity": dict(Entity.parse(row.entity).user_first),
            "key": row.key,
            "value": None if _is_undivided(row) else row.value,
            "file": row.file,
            "line": row.line,
            "from": row.derivation,
            "until": row.until,
            "whole": row.whole,
        }
        for row in rows
    ]


def explanation_screen(
    rows: Sequence[DesiredRow], coming: Collection[Key], changes: Changes
) -> Screen:
    """Return each entity with its limits, their sources, and when they end or change.

    Those that are `coming` begin later.
    """
    screen: list[Any] = []
    for entity, group in groupby(rows, key=lambda row: row.entity):
        screen.append(line(entity, Tone.STRONG))
        for row in group:
            now = "none" if row.id in coming else f"{_value(row)}, {_from(row)}"
            screen.append(line(f"  {row.key}: {now}"))
            for time, later in changes.get(row.id, ()):
                value = _value(later) if later else format_limit(row.key, None)
                where = f", {_from(later)}" if later else ""
                screen.append(line(f"    from {time}: {value}{where}", Tone.CONTEXT))
    return screen


def undivided_lines(rows: Iterable[DesiredRow], cluster: str) -> Iterator[Line]:
    """Yield a line that states how many limits nobody can know without the brokers, if any."""
    if undivided := sum(map(_is_undivided, rows)):
        limits = f"{counted(undivided, 'limit')} of the whole cluster"
        shares = f"{command('explain', cluster)} --brokers N, or a FILE for topics"
        text = f"{limits} {plural(undivided, 'is', 'are')} divided by the brokers at each run."
        yield line(f"{text} To see the shares: {shares}", Tone.CONTEXT)


def _is_undivided(row: DesiredRow) -> bool:
    return row.needs_brokers and row.whole is not None


def _value(row: DesiredRow) -> str:
    return format_limit(row.key, row.value) + (" per cluster" if _is_undivided(row) else "")


def _from(row: DesiredRow) -> str:
    return ": ".join(filter(None, (f"{row.file}:{row.line}", row.derivation)))
