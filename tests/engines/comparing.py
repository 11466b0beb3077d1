"""What an engine writes about the clients of an inventory."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from quota_ops.model.plans.client_effects import CLIENT_EFFECTS, ClientEffectRow, InventoryEffects
from quota_ops.sql.client_effects import EffectsEngine, limits_table
from quota_ops.sql.inventory import find_inventory
from quota_ops.store.places import parquet
from quota_ops.store.places.run_store import open_place
from tests.engines.effects_oracle import Stored


def by_client(row: ClientEffectRow) -> tuple[str, str, str]:
    """Return what no two rows share."""
    return row.user, row.client_id, row.key


def compare(
    engine: EffectsEngine, inventory: Path, before: Stored, after: Stored
) -> tuple[list[ClientEffectRow], InventoryEffects]:
    """Return the rows that an engine writes, sorted, and its numbers."""
    to = open_place(inventory.parent / f"{inventory.name}-effects")
    found = find_inventory(open_place(inventory))
    owners = engine.compare_limits(found, limits_table(before), limits_table(after), to)
    paths = [leaf.path for leaf in to.walk() if leaf.path.startswith("part-")]
    tables = [pq.read_table(str(to / path)) for path in paths]
    rows = parquet.conform(CLIENT_EFFECTS, pa.concat_tables(tables))
    return sorted(parquet.read_rows(CLIENT_EFFECTS, rows), key=by_client), InventoryEffects(
        "", owners
    )
