"""The effects of a run's writes on the clients of an inventory."""

from collections.abc import Mapping
from typing import Protocol

import pyarrow as pa

from quota_ops.model.plans.client_effects import OwnerEffects
from quota_ops.model.quotas.entity import Entity
from quota_ops.model.quotas.quota import CLIENT_KEYS, QUOTA_KEYS
from quota_ops.model.quotas.rows import Key, StoredQuota, Targets
from quota_ops.precedence.tables import LIMITS, list_limits
from quota_ops.sql.inventory import Inventory
from quota_ops.store.places import parquet
from quota_ops.store.places.place import Place

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
