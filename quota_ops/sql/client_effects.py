"""The effects of a run's writes on the clients of its cluster's inventory, and where they are kept.

The summary names the folder of its rows and is written last. So an interrupted attempt leaves the
earlier summary with its rows, and two attempts never write the same file.
"""

import logging
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from hashlib import sha256
from typing import Protocol
from uuid import uuid4

import pyarrow as pa
from msgspec.structs import replace

from quota_ops.model.errors import InvalidInput, QuotaOpsError
from quota_ops.model.plans.client_effects import (
    CLIENT_EFFECTS,
    INVENTORY,
    ClientEffectRow,
    InventoryEffects,
    OwnerEffects,
)
from quota_ops.model.quotas.difference import WRITES
from quota_ops.model.quotas.entity import Entity
from quota_ops.model.quotas.quota import CLIENT_KEYS, QUOTA_KEYS
from quota_ops.model.quotas.rows import Key, StoredQuota, Targets
from quota_ops.model.quotas.tables import ACTUAL, DIFFERENCES
from quota_ops.model.text import command
from quota_ops.precedence.resolution import LIMITS, list_limits
from quota_ops.sql.attempt import delete_tree
from quota_ops.sql.inventory import Inventory, explain_no_client, find_inventory
from quota_ops.sql.job import EngineFailed, SomeDamaged
from quota_ops.store.places import parquet
from quota_ops.store.places.numbered_files import read_file
from quota_ops.store.places.place import Place
from quota_ops.store.places.run_store import open_place
from quota_ops.store.run.files import CLIENT_COUNTS
from quota_ops.store.run.folder import RunFolder

UNLIMITED_KEYS = pa.table(
    {
        "key": list(CLIENT_KEYS),
        "unlimited": pa.array([QUOTA_KEYS[key].unlimited for key in CLIENT_KEYS], pa.float64()),
    }
)
"""The keys of clients, each with the value from which on it does not limit."""


class EffectsEngine(Protocol):
    """An engine that runs the SQL of effects over an inventory."""

    def compare_limits(
        self, inventory: Inventory, before: pa.Table, after: pa.Table, to: Place
    ) -> tuple[OwnerEffects, ...]:
        """Write the rows of CLIENT_EFFECTS below `to`, and return the numbers by owner.

        `before` and `after` are tables LIMITS. Raises NotClients, before it writes anything, if the
        inventory has a line that is not valid.
        """
        ...


def limits_table(stored: Mapping[Key, float]) -> pa.Table:
    """Return the table LIMITS of stored values."""
    quotas = (
        StoredQuota(Entity.parse(entity), key, value) for (entity, key), value in stored.items()
    )
    return parquet.from_rows(LIMITS, list_limits(quotas))


def apply_targets(stored: Mapping[Key, float], targets: Targets) -> dict[Key, float]:
    """Return the stored values after writes."""
    after: dict[Key, float | None] = {**stored, **targets}
    return {key: value for key, value in after.items() if value is not None}


_ROWS = "client_effects"
_NOTHING: Targets = {}
LARGE_BYTES = 64_000_000
"""Bytes of an inventory, about two million clients, from which on Spark is worth its start."""
ALLOWED = "QUOTA_OPS_INVENTORIES"
"""The environment variable with the addresses below which an inventory in a bucket is read."""
_log = logging.getLogger(__name__)


def write_client_effects(
    engine: EffectsEngine, folder: RunFolder, earlier_writes: Targets = _NOTHING
) -> InventoryEffects | None:
    """Write which clients a run affects; None if it writes nothing or there is no inventory.

    They are compared with the limits that the clients have after `earlier_writes`. Writes nothing
    if the run has them already, for the same differences and inventory. Raises InvalidInput, with
    file and line, for a line of the inventory that is not a client.
    """
    if folder.policy().inventory is None:
        return None
    has_writes = any(row.action in WRITES for row in folder.differences())
    earlier = folder.find(CLIENT_COUNTS)
    if not (has_writes or earlier):
        return None
    inventory = find_inventory(_find_place(folder))
    computed_from = _fingerprint(folder, inventory, earlier_writes)
    if earlier and earlier.computed_from == computed_from:
        return earlier
    attempt = uuid4().hex
    to = folder.place / _ROWS / attempt
    found = find_client_effects(engine, folder, to, inventory, earlier_writes)
    effects = replace(
        found,
        inventory=str(folder.policy().inventory),
        attempt=attempt,
        computed_from=computed_from,
    )
    folder.write(CLIENT_COUNTS, effects)
    if earlier and earlier.attempt:
        with suppress(InvalidInput, OSError):  # no summary names them any more
            delete_tree(folder.place / _ROWS / earlier.attempt)
    return effects


def write_unknown_effects(folder: RunFolder, error: Exception) -> None:
    """Write that the clients of a run are not counted, because of this error."""
    why = error.message if isinstance(error, QuotaOpsError) else str(error)
    effects = InventoryEffects(str(folder.policy().inventory), (), trouble=why)
    folder.write(CLIENT_COUNTS, effects)


def compare_runs(engine: EffectsEngine, folders: Iterable[RunFolder], *, at_least: int = 0) -> None:
    """Write the effects of each run whose cluster has an inventory of `at_least` bytes.

    A run without differences, or with a wrong inventory, costs itself alone: raises SomeDamaged
    after the others are written, or InvalidInput for a single run.
    """
    failures: dict[Place, InvalidInput] = {}
    compared = list(folders)
    for folder in compared:
        try:
            if folder.policy().inventory and find_inventory(_find_place(folder)).bytes >= at_least:
                write_client_effects(engine, folder)
        except InvalidInput as error:
            failures[folder.place] = error
    if failures and len(compared) == 1:
        raise failures[compared[0].place]
    if failures:
        raise SomeDamaged(failures, len(compared))


def compare_large_inventories(engine: EffectsEngine, places: Iterable[Place]) -> None:
    """Write the effects of runs with a large inventory; logs an error, and never raises one.

    The stage plan computes the effects that are missing, and raises the errors of its own run.
    """
    try:
        compare_runs(engine, map(RunFolder, places), at_least=LARGE_BYTES)
    except (InvalidInput, EngineFailed) as error:
        _log.warning("%s", error)


def find_client_effects(
    engine: EffectsEngine,
    folder: RunFolder,
    to: Place,
    inventory: Inventory | None,
    earlier_writes: Targets = _NOTHING,
) -> InventoryEffects:
    """Write the rows of CLIENT_EFFECTS below `to`, and return the numbers by owner.

    Values that were judged before count as written already, as for the guards: see
    `find_write_effects`. The inventory comes from cluster.yaml, unless another one is given. Raises
    InvalidInput without any.
    """
    clients = inventory or find_inventory(_find_place(folder))
    writes = [row for row in folder.differences() if row.action in WRITES]
    agreed = {row.id: row.target for row in writes if row.is_agreed}
    before = read_quotas(folder, {**earlier_writes, **agreed})
    after = apply_targets(before, {row.id: row.target for row in writes})
    owners = engine.compare_limits(clients, limits_table(before), limits_table(after), to)
    if not owners:
        raise explain_no_client(clients)
    return InventoryEffects(str(clients.place), owners, agreed=len(agreed))


def _find_place(folder: RunFolder) -> Place:
    policy = folder.policy()
    if policy.inventory is None:
        raise InvalidInput(
            f"cluster.yaml of {policy.cluster} has no inventory of clients",
            "Add `inventory` to it, or pass a file with --inventory. To write a first one: "
            f"{command('inventory', policy.cluster)}.",
        )
    if policy.inventory_in_git:
        return folder.place / INVENTORY.file
    check_is_allowed(policy.inventory)
    return open_place(policy.inventory)


def check_is_allowed(address: str) -> None:
    """Raise InvalidInput unless this process may read an inventory at an address in YAML.

    Whoever runs the process lists the allowed addresses in its environment: a branch can name any
    address, but must not choose what the credentials of a CI job are used on.
    """
    allowed = [prefix.rstrip("/") for prefix in os.environ.get(ALLOWED, "").split()]
    if not any(address == prefix or address.startswith(f"{prefix}/") for prefix in allowed):
        raise InvalidInput(
            f"{address} was not read: it is not below an address in {ALLOWED}",
            f"Whoever runs quota-ops may allow it, for example {ALLOWED}=s3://BUCKET/FOLDER. "
            "Separate several addresses with spaces.",
        )


def _fingerprint(folder: RunFolder, inventory: Inventory, earlier_writes: Targets) -> str:
    """Return a text that differs if the effects may differ: the tables, and the files' sizes.

    In a run, a file in a bucket that another one of the same size replaced is not noticed.
    """
    found = sha256(repr((inventory.files, inventory.bytes, earlier_writes)).encode())
    tables = [ACTUAL.file, DIFFERENCES.file]
    if folder.policy().inventory_in_git:
        tables.append(INVENTORY.file)
    for name in tables:
        found.update(read_file(folder.place / name))
    return found.hexdigest()


def read_quotas(folder: RunFolder, earlier_writes: Targets) -> dict[Key, float]:
    """Return the quotas that the cluster stores, as if `earlier_writes` had been written."""
    return apply_targets(folder.read_values(ACTUAL), earlier_writes)


def read_effect_rows(folder: RunFolder, effects: InventoryEffects) -> Iterator[ClientEffectRow]:
    """Yield the rows of CLIENT_EFFECTS of a run.

    Raises InvalidInput if they are missing or damaged.
    """
    if effects.attempt is not None:
        yield from read_rows_below(folder.place / _ROWS / effects.attempt)


def read_rows_below(place: Place) -> Iterator[ClientEffectRow]:
    """Yield the rows of CLIENT_EFFECTS in the parts of a folder."""
    for name in place.list():
        if name.startswith("part-"):
            part = place / name
            table = parquet.from_bytes(CLIENT_EFFECTS, read_file(part), str(part))
            yield from parquet.read_rows(CLIENT_EFFECTS, table)
