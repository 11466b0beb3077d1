"""A snapshot of a cluster's quotas, as `describe --format jsonl` writes it: one row a line."""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from quota_ops.model.entity import Entity
from quota_ops.model.errors import InvalidInput
from quota_ops.model.rows import StoredQuota

EXAMPLE = (
    '{"entity": {"user": "alice", "client-id": null}, "key": "request_percentage", "value": 5}'
)


def read_snapshot(lines: Iterable[str], place: str) -> tuple[StoredQuota, ...]:
    """The rows of a snapshot, `null` as an entity's name being its default; blank lines are none.

    Raises InvalidInput with `place` and the line that is no row, or that says a row again.
    """
    rows: dict[tuple[Entity, str], StoredQuota] = {}
    for number, row in _rows(lines, place):
        if (row.entity, row.key) in rows:
            raise InvalidInput(f"{place}:{number}: {row.entity.text} has {row.key} twice.")
        rows[row.entity, row.key] = row
    return tuple(rows.values())


def _rows(lines: Iterable[str], place: str) -> Iterator[tuple[int, StoredQuota]]:
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            yield number, _row(json.loads(line))
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            raise InvalidInput(
                f"{place}:{number}: this is not a row of a snapshot.",
                f"A row is one line like {EXAMPLE}",
            ) from None


def _row(said: Mapping[str, Any]) -> StoredQuota:
    names, key = said["entity"], said["key"]
    if not (names and isinstance(key, str)) or isinstance(said["value"], bool):
        raise TypeError
    if not all(name is None or isinstance(name, str) for name in names.values()):
        raise TypeError
    return StoredQuota(Entity.of(names), key, float(said["value"]))
