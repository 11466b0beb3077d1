"""Which of a cluster's brokers could not be queried: the registration, or what runs noted."""

from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from quota_ops.kafka.cluster import Cluster
from quota_ops.model.errors import InvalidInput
from quota_ops.model.metadata import Metadata
from quota_ops.model.policy import Policy
from quota_ops.model.registration import (
    NO_BROKERS,
    KnownBrokers,
    Registered,
    find_absent,
    find_needless,
)
from quota_ops.store import ledger
from quota_ops.store.ledger_notes import known_brokers


def read_known_brokers(ledger_folder: Path) -> KnownBrokers:
    """The brokers of the last verified run; none where there is no ledger that can be read."""
    with suppress(InvalidInput):
        return known_brokers(ledger.last(ledger_folder).table)
    return NO_BROKERS


def with_absent(
    image: Metadata | None,
    cluster: Cluster,
    policy: Policy,
    known: KnownBrokers,
    broker: int | None = None,
) -> tuple[Metadata, tuple[Registered, ...] | None]:
    """The metadata with the cluster's absent brokers, and the registration where there is one.

    The registration is queried through `broker`, or the one that answered last.
    """
    found, registered = image or Metadata(), cluster.registered(broker)
    live = {one.id for one in cluster.brokers}
    absent = find_absent(live, registered, known, found.stalled, policy.retired)
    needless = find_needless(live, registered, policy.retired)
    complete = registered is not None
    return replace(found, absent=absent, complete=complete, needless=needless), registered
