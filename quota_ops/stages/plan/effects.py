"""The effects of a plan's writes on classes of clients, which people see beside the values."""

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any

import msgspec

from quota_ops.model.plans.effect import ClassEffect, Effect, Risk
from quota_ops.model.plans.ledger_edits import VERIFIED
from quota_ops.model.plans.plan import Plan
from quota_ops.model.quotas.difference import Difference
from quota_ops.model.quotas.entity import Entity
from quota_ops.model.quotas.owners import OwnerIndex
from quota_ops.model.quotas.rows import Key
from quota_ops.model.quotas.tables import ACTUAL, DESIRED, LEDGER
from quota_ops.model.stored import complete_type
from quota_ops.precedence.effects import Owners, Ownership, find_write_effects
from quota_ops.sql.client_effects import read_quotas
from quota_ops.store.places.parquet import to_rows
from quota_ops.store.run.files import EFFECTS
from quota_ops.store.run.folder import RunFolder

_Row = tuple[str, str, Effect]
complete_type(list[_Row])


def find_plan_effects(
    folder: RunFolder, plan: Plan, others: Sequence[Difference] = ()
) -> dict[Key, Effect]:
    """Return the effects of a plan's writes on classes of clients, once `others` are written.

    A process that plans and applies finds them once, unless the plan was changed between the two.
    """
    return folder.read_cached(f"effects of plan {plan.digest}", lambda: _find(folder, plan, others))


def _find(folder: RunFolder, plan: Plan, others: Sequence[Difference]) -> dict[Key, Effect]:
    stored = to_rows(folder.read_table(ACTUAL), "entity", "key", "value")
    if others:
        targets = {row.id: row.target for row in others}
        stored = ((*key, value) for key, value in read_quotas(folder, targets).items())
    return find_write_effects(stored, plan.writes, _read_ownership(folder, plan, others))


def _read_ownership(folder: RunFolder, plan: Plan, others: Sequence[Difference]) -> Ownership:
    """Return who owns the stored quotas, and the writes.

    The owner of a stored quota comes from the ledger or, before a run has recorded it, from the
    file that declares it.
    """
    declared = to_rows(folder.read_table(DESIRED), "entity", "key", "owner")
    known = to_rows(folder.read_table(LEDGER), "entity", "key", "owner", "state")
    changed = {row.key for row in plan.writes}  # other keys have no limits that change
    before = {(entity, key): owner for entity, key, owner in declared if key in changed}
    for entity, key, owner, state in known:
        if key in changed and state == VERIFIED:
            before[entity, key] = owner
    before |= {row.id: row.owner for row in others}
    after: Owners = {row.id: row.owner for row in plan.writes}
    return Ownership(before, after, OwnerIndex(plan.policy.owners))


def write_effects(folder: RunFolder, effects: Mapping[Key, Effect]) -> None:
    """Write effects.json if a write has an effect that its values do not show."""
    shown = {row: effect for row, effect in effects.items() if not effect.is_evident(row.key)}
    if shown or folder.has(EFFECTS):
        rows = [effect_json(*row, effect) for row, effect in shown.items()]
        folder.write_json(EFFECTS, {"effects": rows})
        folder.read_cached(EFFECTS, lambda: shown)


def read_effects(folder: RunFolder) -> dict[Key, Effect]:
    """Return what `write_effects` wrote. Raises InvalidInput if it is damaged."""
    return folder.read_cached(
        EFFECTS, lambda: folder.read_as(EFFECTS, lambda values: parse_effects(values["effects"]))
    )


def effect_json(entity: str, key: str, effect: Effect) -> Any:
    """Return an effect as JSON values: a list, which takes a third of the bytes of an object.

    An object if it has a number that JSON lacks, which is then text.
    """
    limits = [limit for each in effect.classes for limit in (each.before, each.after) if limit]
    if all(isfinite(limit.value) for limit in limits):
        return [entity, key, effect]
    return [entity, key, effect.as_json(key)]


def parse_effects(values: Sequence[Any]) -> dict[Key, Effect]:
    """Parse outputs of `effect_json`.

    Raises KeyError, TypeError or ValueError for anything else.
    """
    lists = [
        [*row[:2], _list_fields(row[2]) if isinstance(row[2], dict) else row[2]] for row in values
    ]
    return {Key(*row[:2]): row[2] for row in msgspec.convert(lists, list[_Row])}


def _list_fields(values: Mapping[str, Any]) -> list[Any]:
    """Return an object as the list of its fields; which has a number that JSON lacks."""
    classes = [
        [
            *(_list_limit(client_class[side]) for side in ("before", "after")),
            *(client_class[name] for name in ClassEffect.__struct_fields__[2:]),
        ]
        for client_class in values["classes"]
    ]
    counts = (values[name] for name in Effect.__struct_fields__[1:-1])
    return [classes, *counts, [values["risk"][name] for name in Risk._fields]]


def _list_limit(values: Mapping[str, Any] | None) -> list[Any] | None:
    if values is None:
        return None
    return [float(values["value"]), values["entity"], Entity.parse(values["entity"]).types]
