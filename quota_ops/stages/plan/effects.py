"""The effects of a plan's writes on classes of clients, which people see beside the values."""

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any

import msgspec

from quota_ops.model.plans.effect import Effect
from quota_ops.model.plans.ledger_edits import VERIFIED
from quota_ops.model.plans.plan import Plan
from quota_ops.model.quotas.difference import Difference
from quota_ops.model.quotas.owners import OwnerIndex
from quota_ops.model.quotas.quota import json_number
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
    """Return an effect as JSON values: lists, which take a third of the bytes of objects.

    A number that JSON lacks is text.
    """
    limits = [limit for each in effect.classes for limit in (each.before, each.after) if limit]
    if all(isfinite(limit.value) for limit in limits):
        return [entity, key, effect]
    return [entity, key, _spell_numbers(msgspec.to_builtins(effect))]


def _spell_numbers(values: Any) -> Any:
    if isinstance(values, list | tuple):
        return [*map(_spell_numbers, values)]
    return json_number(values) if isinstance(values, float) else values


def parse_effects(values: Sequence[Any]) -> dict[Key, Effect]:
    """Parse outputs of `effect_json`. Raises ValueError for anything else."""
    rows = msgspec.convert(values, list[_Row], strict=False)  # "inf" is a number
    return {Key(entity, key): effect for entity, key, effect in rows}
