"""Limits of addresses that brokers store and do not apply, as the history shows."""

from collections.abc import Mapping
from contextlib import suppress

from quota_ops.model.errors import InvalidInput
from quota_ops.model.quotas.difference import Kind
from quota_ops.model.quotas.quota import same
from quota_ops.model.quotas.rows import Key, LostLimit
from quota_ops.precedence.addresses import find_shortest
from quota_ops.sql.history import read_overriding_addresses
from quota_ops.store.places.run_store import RunStore
from quota_ops.store.run.names import NamedCluster


def find_lost_limits(
    store: RunStore, cluster: NamedCluster, stored: Mapping[Key, float]
) -> tuple[LostLimit, ...]:
    """Return the stored limits of addresses that no broker applies.

    An earlier run found such an address in another spelling too, which the cluster no longer
    stores: brokers apply neither, until the one that is left is cleared and set again. Empty if the
    history cannot be read. Source: measured on brokers.
    """
    addresses = {key.entity for key in stored if key.entity.startswith("ip=")}
    quotas = {}
    with suppress(InvalidInput):
        found = read_overriding_addresses(store, cluster, addresses) if addresses else ()
        quotas = {Key(quota.entity, quota.key): quota for quota in found}
    lost = []
    for (entity, key), other in quotas.items():
        if other.kind != Kind.OVERRIDING or other.last_seen is None or (entity, key) in stored:
            continue
        left = Key(find_shortest(entity) or "", key)
        value, own = stored.get(left), quotas.get(left)
        # A run that set it may have found the other one then; an alter looks for no other.
        set_at, altered_at = (own.set_at or "", own.altered_at or "") if own else ("", "")
        is_newer = set_at > other.last_seen or altered_at >= other.last_seen
        if value is not None and same(value, other.desired) and not is_newer:
            lost.append(LostLimit(*left, value, entity))
    return tuple(lost)
