"""A snapshot of a cluster's quotas, as `describe --format jsonl` writes it: one row per line."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

from quota_ops.model.errors import InvalidInput
from quota_ops.model.quotas.entity import Entity
from quota_ops.model.quotas.rows import StoredQuota
from quota_ops.model.text import counted

EXAMPLE = (
    '{"entity": {"user": "alice", "client-id": null}, "key": "request_percentage", "value": 5}'
)


class SnapshotHeader(Struct, frozen=True):
    """The first line of a snapshot: its cluster, and whether rows were left out.

    `cluster_id` is None if the snapshot contains no cluster id. `filter` is the text of the filter
    that the rows match, None if the file has all stored rows. `rows` is how many rows follow, None
    if the header does not have the number.
    """

    cluster_id: str | None = None
    filter: str | None = None
    rows: int | None = None

    def as_line(self) -> str:
        """Return the header as a line of JSON."""
        return json.dumps(asdict(self), ensure_ascii=False)

    def require_cluster(self, cluster_id: str, place: str) -> None:
        """Raise InvalidInput when the header names another cluster."""
        if self.cluster_id not in {None, cluster_id}:
            raise InvalidInput(
                f"{place} is of cluster {self.cluster_id}, but cluster.yaml has {cluster_id}.",
                "Use the file that was written for this cluster. To use these rows for this "
                "cluster on purpose, remove the first line of the file.",
            )

    def require_all(self, place: str) -> None:
        """Raise InvalidInput when rows were left out, because they would look like removed rows."""
        if self.filter is not None:
            raise InvalidInput(
                f"{place} has only the quotas that match {self.filter}.",
                "Write a snapshot of all quotas: describe without --names, --defaults and --any.",
            )

    def require_rows(self, found: int, place: str) -> None:
        """Raise InvalidInput when the file has fewer or more rows than were written."""
        if self.rows not in {None, found}:
            raise InvalidInput(
                f"{place} has {found:,} of {counted(self.rows or 0, 'row')}: it was cut off or "
                "changed.",
                "Write it again. To use it as it is, remove `rows` from its first line.",
            )


def read_header(lines: Sequence[str], place: str) -> SnapshotHeader:
    """Return the header of a file of rows; an empty one if the file begins with a row.

    Raises InvalidInput with `place` and the line if a header has invalid values.
    """
    for number, line in enumerate(lines, start=1):
        if line.strip():
            values = _header_values(line)
            texts, rows = (values.get("cluster_id"), values.get("filter")), values.get("rows")
            are_texts = all(text is None or isinstance(text, str) for text in texts)
            if not (are_texts and isinstance(rows, int | None)):
                raise InvalidInput(
                    f"{place}:{number}: cluster_id and filter must be text or null, rows a number.",
                    f"A snapshot begins with a line like "
                    f"{SnapshotHeader('CLUSTER', None, 24).as_line()}",
                )
            return SnapshotHeader(*texts, rows)
    return SnapshotHeader()


def numbered_rows(lines: Iterable[str]) -> Iterator[tuple[int, str]]:
    """Yield the lines that are neither a header nor blank, with their numbers from 1."""
    numbered = ((number, line) for number, line in enumerate(lines, start=1) if line.strip())
    for number, line in numbered:
        if not _header_values(line):
            yield number, line
        break
    yield from numbered


def _header_values(line: str) -> Mapping[str, Any]:
    """Return the values of a header; empty if the line is not a header."""
    try:
        values = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return values if isinstance(values, dict) and "cluster_id" in values else {}


def read_snapshot(lines: Iterable[str], place: str) -> tuple[StoredQuota, ...]:
    """Return the rows of a snapshot; a name of `null` is the default, and blank lines are skipped.

    Raises InvalidInput with `place` and the line if a row is invalid or repeated.
    """
    rows: dict[tuple[Entity, str], StoredQuota] = {}
    for number, row in _rows(lines, place):
        if (row.entity, row.key) in rows:
            raise InvalidInput(f"{place}:{number}: {row.entity.text} has {row.key} twice.")
        rows[row.entity, row.key] = row
    return tuple(rows.values())


def _rows(lines: Iterable[str], place: str) -> Iterator[tuple[int, StoredQuota]]:
    for number, line in numbered_rows(lines):
        try:
            entity, key, value = parse_row(line)
            yield number, StoredQuota(entity, key, float(value))
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            raise InvalidInput(
                f"{place}:{number}: this is not a row of a snapshot.",
                f"A row is one line like {EXAMPLE}",
            ) from None


def _collect(fields: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(fields)
    if len(values) < len(fields):
        raise ValueError("A field is there twice.")
    return values


def parse_row(line: str) -> tuple[Entity, str, Any]:
    """Return the entity, the key and the value of a line, which may be of any type but bool.

    Raises the errors of Python for a line that is no row, or has a field twice.
    """
    row = json.loads(line, object_pairs_hook=_collect)
    names, key, value = row["entity"], row["key"], row["value"]
    texts = [key, *names, *(name for name in names.values() if name is not None)]
    if not names or isinstance(value, bool) or not all(isinstance(text, str) for text in texts):
        raise TypeError
    return Entity.of(names), key, value
