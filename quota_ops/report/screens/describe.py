"""Stored quotas as KIP-546's text, a table, JSON, and snapshot lines."""

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any

from quota_ops.model.quotas.entity import Entity
from quota_ops.model.quotas.quota import QUOTA_KEYS, UNLIMITED, format_limit, json_number
from quota_ops.model.quotas.rows import StoredQuota
from quota_ops.model.quotas.snapshot import SnapshotHeader
from quota_ops.report.outline.layout import Screen, Table, Tone, line


def kip546_entity(entity: Entity) -> str:
    """Return an entity as KIP-546 prints it: `{user=alice, client-id=<default>}`.

    A name that is not plain is printed as a JSON string, so that it fits on one line, and a user
    called `<default>` is not mistaken for the default.
    """
    return f"{{{', '.join(Entity((part,)).text for part in entity.user_first)}}}"


def kip546_screen(stored: Sequence[StoredQuota]) -> Screen:
    """Return each entity, and under it a line for each key with the stored number."""
    lines = []
    for entity, rows in groupby(stored, key=lambda row: row.entity):
        lines.append(line(kip546_entity(entity), Tone.STRONG))
        lines += [line(f"  {row.key}={_bare(row.key, row.value)}") for row in rows]
    return lines


def _bare(key: str, value: float) -> str:
    known = QUOTA_KEYS.get(key)
    return UNLIMITED if known is not None and value == known.unlimited else repr(value)


def table_screen(stored: Sequence[StoredQuota]) -> Screen:
    """Return a table with a row for each stored key; an empty screen if nothing is stored."""
    rows = ((row.entity.text, row.key, format_limit(row.key, row.value)) for row in stored)
    return (Table.of(("entity", "key", "value"), rows),) if stored else ()


def stored_objects(stored: Iterable[StoredQuota]) -> list[dict[str, Any]]:
    """Return a JSON object for each row: `entity` (null is the default), `key`, `value`.

    JSON has no NaN and no infinity: they are the strings `nan`, `inf` and `-inf`.
    """
    return [
        {
            "entity": dict(quota.entity.user_first),
            "key": quota.key,
            "value": json_number(quota.value),
        }
        for quota in stored
    ]


def snapshot_lines(stored: Iterable[StoredQuota], header: SnapshotHeader) -> Iterator[str]:
    """Yield the header and the objects, one a line: the format that --actual reads."""
    yield header.as_line()
    for quota in stored_objects(stored):
        yield json.dumps(quota, ensure_ascii=False)
