"""The effects of a plan's writes on classes of clients, which people see beside the values."""

from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import product
from types import NoneType
from typing import Any

from quota_ops.model.effect import ClassEffect, Effect, Limit
from quota_ops.model.entity import ENTITY_TYPES, Entity
from quota_ops.model.plan import Plan
from quota_ops.model.rows import Key
from quota_ops.model.tables import ACTUAL
from quota_ops.precedence.changed_limits import Change
from quota_ops.precedence.effects import find_effects
from quota_ops.store.parquet import to_values
from quota_ops.store.run_folder import RunFolder
from quota_ops.store.run_json import typed

EFFECTS = "effects.json"
"""The artefact with the effects that are not evident from the values before and after."""
_TYPES = frozenset(ENTITY_TYPES)
_CLIENT_TYPES = frozenset(
    product(*[(str, NoneType)] * 2, (int,), (bool, NoneType), (str, NoneType))
)
"""The types of the values that define which clients a class has; thousands of classes have them."""


def find_plan_effects(folder: RunFolder, plan: Plan) -> dict[Key, Effect]:
    """Return the effects of a plan's writes on classes of clients."""
    changes = {row.id: Change(row.before, row.target) for row in plan.writes}
    return find_effects(_read_stored(folder), changes)


def write_effects(folder: RunFolder, effects: Mapping[Key, Effect]) -> None:
    """Write effects.json if a write has an effect that its values do not show."""
    rows = [
        {"entity": entity, "key": key, **effect.as_json(key)}
        for (entity, key), effect in effects.items()
        if not effect.is_evident(key)
    ]
    if rows or folder.has(EFFECTS):
        folder.write_json(EFFECTS, {"effects": rows})


def _read_stored(folder: RunFolder) -> Iterator[tuple[str, str, float]]:
    table = folder.read_table(ACTUAL)
    columns = (to_values(table[name]) for name in ("entity", "key", "value"))
    yield from zip(*columns, strict=True)


def read_effects(folder: RunFolder) -> dict[Key, Effect]:
    """Return what `write_effects` wrote; InvalidInput if it is damaged."""
    return folder.read_as(EFFECTS, _parse_effects)


def _parse_effects(values: Mapping[str, Any]) -> dict[Key, Effect]:
    return {
        Key(typed(one["entity"], str), typed(one["key"], str)): parse_effect(one)
        for one in values["effects"]
    }


def parse_effect(values: Mapping[str, Any]) -> Effect:
    """Parse the output of `Effect.as_json`; KeyError or TypeError for anything else."""
    counts = [values[name] for name in Effect._fields[1:]]
    if not all(type(one) is int for one in counts):
        raise TypeError(f"{counts!r} are no counts")
    return Effect(tuple([_parse_class(one) for one in values["classes"]]), *counts)


def _parse_class(values: Mapping[str, Any]) -> ClassEffect:
    before, after = _parse_limit(values["before"]), _parse_limit(values["after"])
    clients = [values[name] for name in ClassEffect._fields[2:]]
    if tuple(map(type, clients)) not in _CLIENT_TYPES:
        raise TypeError(f"{clients!r} are no clients")
    return ClassEffect(before, after, *clients)


def _parse_limit(values: Mapping[str, Any] | None) -> Limit | None:
    if values is None:
        return None
    entity = typed(values["entity"], str)
    return Limit(float(values["value"]), entity, _parse_types(entity))


@lru_cache(maxsize=16)  # a limit's entity is mostly that of the limit before it
def _parse_types(entity: str) -> tuple[str, ...]:
    if '"' in entity:
        return Entity.parse(entity).types
    types = tuple([part.partition("=")[0] for part in entity.split(",")])
    if not _TYPES.issuperset(types):
        raise ValueError(f"not an entity text: {entity!r}")
    return types
