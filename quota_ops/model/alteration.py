"""An alteration: what one request entry changes on one entity."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from quota_ops.model.entity import Entity
from quota_ops.model.outcome import Outcome
from quota_ops.model.quota import same
from quota_ops.model.rows import BatchRow


@dataclass(frozen=True, slots=True)
class Alteration:
    """Keys of one entity and their new values; None clears a key.

    Kafka's name is ClientQuotaAlteration; all its keys succeed or fail together.
    """

    entity: Entity
    changes: tuple[tuple[str, float | None], ...]


def alterations(rows: Iterable[BatchRow]) -> tuple[Alteration, ...]:
    """The rows of one batch, sorted by entity as BATCHES is, as one alteration per entity."""
    return tuple(
        Alteration(Entity.parse(entity), tuple((row.key, row.after) for row in group))
        for entity, group in groupby(rows, key=lambda row: row.entity)
    )


def altered_keys(values: Mapping[str, Any]) -> frozenset[tuple[str, str]]:
    """Return the entity and key of each change of alter.json that makes a value another one.

    To clear a key that is not there, or to set the value that is there, changes nothing.
    """
    return frozenset(
        (row["entity"], row["key"])
        for row in values["changes"]
        if not same(_number(row["before"]), _number(row["after"]))
    )


def _number(value: float | str | None) -> float | None:
    return None if value is None else float(value)


def count_altered(keys: Collection[tuple[str, str]], outcomes: Iterable[Outcome]) -> int:
    """Return how many of these rows the broker accepted."""
    return sum((one.entity, key) in keys for one in outcomes if one.was_written for key in one.keys)
