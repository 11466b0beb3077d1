"""The brokers that belong to the cluster and cannot be queried: for describe and verify."""

from contextlib import suppress

from msgspec.structs import replace

from quota_ops.kafka.cluster import Cluster
from quota_ops.model.clusters import cluster_facts
from quota_ops.model.clusters.cluster_facts import Metadata
from quota_ops.model.errors import InvalidInput
from quota_ops.model.plans.policy import Policy
from quota_ops.store.ledger import ledger
from quota_ops.store.places.run_store import ClusterStore


def read_known_brokers(records: ClusterStore) -> cluster_facts.KnownBrokers:
    """Return the brokers of the last verified run; an empty result if no ledger can be read."""
    with suppress(InvalidInput):
        return ledger.read(records).notes.brokers
    return cluster_facts.NO_BROKERS


def add_absent_brokers(
    metadata: Metadata | None,
    cluster: Cluster,
    policy: Policy,
    known: cluster_facts.KnownBrokers,
    broker: int | None = None,
) -> tuple[Metadata, tuple[cluster_facts.Registered, ...] | None]:
    """Return the metadata with the cluster's absent brokers, and the registered brokers if known.

    The registered brokers are queried through `broker`, or the broker that responded last.
    """
    found, registered = metadata or Metadata(), cluster.describe_registered(broker)
    live = {broker.id for broker in cluster.brokers}
    absent = cluster_facts.find_absent(live, registered, known, found.stalled, policy.retired)
    needless = cluster_facts.find_needless(live, registered, policy.retired)
    complete = registered is not None
    return replace(found, absent=absent, complete=complete, needless=needless), registered
