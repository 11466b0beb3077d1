"""Limits of addresses that brokers store and do not apply, as the history shows."""

from collections.abc import Mapping

from quota_ops.model.errors import InvalidInput
from quota_ops.model.history.history import QuotaHistory
from quota_ops.model.quotas.quota import same
from quota_ops.model.quotas.rows import Key, LostLimit
from quota_ops.precedence.resolution import find_shortest
from quota_ops.sql.history import Sight, read_overriding_addresses
from quota_ops.store.places.run_store import RunStore
from quota_ops.store.run.names import find_names


def find_lost_limits(
    store: RunStore, name: str, cluster_id: str, stored: Mapping[Key, float]
) -> tuple[LostLimit, ...]:
    """Return the stored limits of addresses that no broker applies.

    An earlier run found such an address in another spelling too, which the cluster no longer
    stores: brokers apply neither, until the one that is left is cleared and set again. Empty if the
    history cannot be read. Source: measured on brokers.
    """
    addresses = {key.entity for key in stored if key.entity.startswith("ip=")}
    if not addresses:
        return ()
    try:
        cluster = find_names(store, name, cluster_id)
        sights, quotas = read_overriding_addresses(store, cluster, addresses)
    except InvalidInput:
        return ()
    lost = []
    for (entity, key), sight in sights.items():
        left = Key(find_shortest(entity) or "", key)
        value = stored.get(left)
        if (entity, key) in stored or value is None or not same(value, sight.desired):
            continue
        own = (quota for quota in quotas if (quota.entity, quota.key) == left)  # of each name
        if not any(_is_set_since(quota, sight) for quota in own):
            lost.append(LostLimit(*left, value, entity))
    return tuple(lost)


def _is_set_since(own: QuotaHistory, sight: Sight) -> bool:
    """Return whether a quota was set after the other spelling of its address was last seen."""
    # A run that set it may have found the other one before that; an alter looks for no other.
    seen = sight.ended if own.set_run == sight.run else sight.started
    return (own.set_at or "") > seen or (own.altered_at or "") >= sight.started
