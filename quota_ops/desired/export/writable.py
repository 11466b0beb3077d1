"""The stored quotas that a quotas file can declare, and why it cannot declare the others."""

from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import NamedTuple

from quota_ops.desired.export.spelling import spell_limit
from quota_ops.desired.names import require_canonical
from quota_ops.desired.yaml.scalars import Misread, show
from quota_ops.desired.yaml.shapes import ANY
from quota_ops.model.quotas.entity import IP, Entity
from quota_ops.model.quotas.quota import QUOTA_KEYS, explain_unalterable, format_limit
from quota_ops.model.quotas.rows import StoredQuota
from quota_ops.precedence.resolution import normalize_address


class Writable(NamedTuple):
    """What a file can declare for an entity: keys, and their limits as YAML."""

    entity: Entity
    limits: tuple[tuple[str, str], ...]


class LeftOut(NamedTuple):
    """A quota that a file cannot declare, and why; `protect` covers the whole entity."""

    entity: Entity
    reason: str
    protect: bool


def split_writable(
    stored: Iterable[StoredQuota],
) -> tuple[tuple[Writable, ...], tuple[LeftOut, ...]]:
    """Split stored quotas, sorted by entity, into those that a file can declare and the others.

    An entity with a value that YAML cannot declare is left out whole; a row that brokers do not
    accept changes to (an unknown type or key) is left out by itself.
    """
    rows = sorted(stored, key=lambda row: (row.entity.text, row.key))
    spellings = _spellings(row.entity for row in rows)
    writable, left_out = [], []
    for entity, group in groupby(rows, key=lambda row: row.entity):
        values = {row.key: row.value for row in group}
        left_out += [
            LeftOut(entity, f"{key}: {reason}", protect=False)
            for key in values
            if (reason := explain_unalterable(entity.types, key)) is not None
        ]
        known = {
            key: value
            for key, value in values.items()
            if explain_unalterable(entity.types, key) is None
        }
        if not known:
            continue
        if (why := _explain_undeclarable(entity, known, spellings)) is not None:
            left_out.append(LeftOut(entity, *why))
        else:
            writable.append(Writable(entity, tuple(_limits(known))))
    return tuple(writable), tuple(left_out)


def _limits(values: Mapping[str, float]) -> Iterable[tuple[str, str]]:
    for name, key in QUOTA_KEYS.items():
        if name in values and (limit := spell_limit(key, values[name])) is not None:
            yield name, limit


def _explain_undeclarable(
    entity: Entity, values: Mapping[str, float], spellings: Mapping[str, list[str]]
) -> tuple[str, bool] | None:
    reason = _wrong_address(entity, spellings) or _wrong_value(values)
    if reason is None:
        return None
    if ANY in entity.as_dict().values():
        return f"{reason}; protect cannot name it, because {ANY} means every name", False
    return reason, True


def _wrong_value(values: Mapping[str, float]) -> str | None:
    for name, value in values.items():
        if spell_limit(QUOTA_KEYS[name], value) is None:
            return f"{name} is {format_limit(name, value)}, which YAML cannot declare"
    return None


def _wrong_address(entity: Entity, spellings: Mapping[str, list[str]]) -> str | None:
    name = entity.as_dict().get(IP)
    if name is None:
        return None
    others = [
        show(spelling)
        for spelling in spellings[normalize_address(name) or name]
        if spelling != name
    ]
    if others:
        return f"the same address as {', '.join(others)}: brokers apply the one changed last"
    try:
        require_canonical(name)
    except Misread as wrong:
        return f"{wrong.message} {wrong.remedy}"
    return None


def _spellings(entities: Iterable[Entity]) -> dict[str, list[str]]:
    """Group the spellings of each address."""
    spelled: dict[str, dict[str, None]] = {}
    for entity in entities:
        name = entity.as_dict().get(IP)
        if name is not None and len(entity.parts) == 1:
            spelled.setdefault(normalize_address(name) or name, {})[name] = None
    return {meant: list(names) for meant, names in spelled.items()}
