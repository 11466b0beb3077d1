"""The effects of a plan's writes on the clients of the cluster's inventory."""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from quota_ops.model.client_effects import (
    CLIENT_EFFECTS,
    INVENTORY,
    ClientEffectRow,
    InventoryEffects,
    OwnerEffects,
)
from quota_ops.model.errors import InvalidInput
from quota_ops.model.field_types import check_types
from quota_ops.model.plan import Plan
from quota_ops.model.rows import Key
from quota_ops.model.tables import ACTUAL
from quota_ops.store import parquet
from quota_ops.store.place import Place
from quota_ops.store.run_folder import RunFolder
from quota_ops.store.run_json import typed
from quota_ops.store.run_store import open_place

if TYPE_CHECKING:
    from quota_ops.sql.effects import EffectsEngine
    from quota_ops.sql.inventory import Inventory

SUMMARY = "client_effects.json"
"""The artefact with the numbers by owner, and the folder with the rows of CLIENT_EFFECTS."""
_ROWS = "client_effects"


def write_client_effects(folder: RunFolder, plan: Plan) -> InventoryEffects | None:
    """Write which clients a plan concerns; None if cluster.yaml names no inventory.

    The summary names the folder of its rows and is written last, so an interrupted attempt leaves
    the earlier summary and its rows. Raises InvalidInput, with file and line, for a line of the
    inventory that is not a client.
    """
    if plan.policy.inventory is None or not (plan.writes or folder.has(SUMMARY)):
        return None
    from quota_ops.sql.embedded_effects import EmbeddedEffects  # noqa: PLC0415 - DuckDB

    earlier = folder.read_json(SUMMARY)["attempt"] if folder.has(SUMMARY) else None
    attempt = uuid4().hex
    to = folder.place / _ROWS / attempt
    effects = replace(find_client_effects(EmbeddedEffects(), folder, plan, to), attempt=attempt)
    folder.write_json(SUMMARY, effects.as_json())
    if earlier:
        delete_rows(folder.place / _ROWS / earlier)
    return effects


def find_client_effects(
    engine: "EffectsEngine",
    folder: RunFolder,
    plan: Plan,
    to: Place,
    inventory: "Inventory | None" = None,
) -> InventoryEffects:
    """Write the rows of CLIENT_EFFECTS below `to`, and return the numbers by owner.

    The inventory is that of cluster.yaml, unless another one is given. InvalidInput without any.
    """
    from quota_ops.sql.effects import apply_targets, limits_table  # noqa: PLC0415 - only here
    from quota_ops.sql.inventory import find_inventory  # noqa: PLC0415 - likewise

    clients = inventory or find_inventory(_find_place(folder, plan))
    name = str(inventory.place) if inventory else str(plan.policy.inventory)
    before = dict(_read_stored(folder))
    after = apply_targets(before, {row.id: row.target for row in plan.writes})
    owners = engine.compare_limits(clients, limits_table(before), limits_table(after), to)
    return InventoryEffects(name, owners)


def _find_place(folder: RunFolder, plan: Plan) -> Place:
    if plan.policy.inventory is None:
        raise InvalidInput(
            f"cluster.yaml of {plan.policy.cluster} names no inventory of clients",
            "Add `inventory` to it, or pass a file with --inventory. quota-ops inventory "
            f"{plan.policy.cluster} writes a first one.",
        )
    if plan.policy.inventory_in_git:
        return folder.place / INVENTORY.file
    return open_place(plan.policy.inventory)


def _read_stored(folder: RunFolder) -> Iterator[tuple[Key, float]]:
    table = folder.read_table(ACTUAL)
    entities, keys, values = (parquet.to_values(table[name]) for name in ("entity", "key", "value"))
    for entity, key, value in zip(entities, keys, values, strict=True):
        yield Key(entity, key), value


def read_client_effects(folder: RunFolder) -> InventoryEffects:
    """Return what `write_client_effects` wrote; InvalidInput if it is damaged."""
    return folder.read_as(SUMMARY, _parse)


def _parse(values: Mapping[str, Any]) -> InventoryEffects:
    owners = check_types([OwnerEffects(**one) for one in values["owners"]])
    attempt = typed(values["attempt"], str | None)
    return InventoryEffects(typed(values["inventory"], str), owners, attempt)


def read_effect_rows(folder: RunFolder, effects: InventoryEffects) -> Iterator[ClientEffectRow]:
    """Yield the rows of CLIENT_EFFECTS of a run; InvalidInput if they are missing or damaged."""
    if effects.attempt is not None:
        yield from read_rows_below(folder.place / _ROWS / effects.attempt)


def read_rows_below(place: Place) -> Iterator[ClientEffectRow]:
    """Yield the rows of CLIENT_EFFECTS in the parts of a folder."""
    for name in place.list():
        if name.startswith("part-"):
            part = place / name
            table = parquet.from_bytes(CLIENT_EFFECTS, part.read(), str(part))
            yield from parquet.read_rows(CLIENT_EFFECTS, table)


def delete_rows(place: Place) -> None:
    """Delete the rows of an earlier attempt, as far as possible: no summary names them."""
    with suppress(InvalidInput, OSError):
        for leaf in place.walk():
            place.below(leaf.path).delete()
        place.delete_folder()
