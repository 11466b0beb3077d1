"""What a cluster holds: asked of its brokers, or read from a snapshot that was taken of it."""

from pathlib import Path

from quota_ops.cli import options
from quota_ops.model.errors import InvalidInput
from quota_ops.model.rows import StoredQuota


def read_stored(
    cluster: str | None, actual: Path | None, desired_state: Path, connection_file: Path | None
) -> tuple[tuple[StoredQuota, ...], str]:
    """The stored quotas, in no order, and the words for where they are.

    With `actual` the cluster is not asked, and need not be named.
    """
    if actual is not None:
        from quota_ops.snapshot import Snapshot

        return Snapshot.read(actual).rows, str(actual)
    if cluster is None:
        raise InvalidInput("no cluster is named", "Name a CLUSTER, or a snapshot by --actual FILE.")
    from quota_ops.desired.read import read_policy
    from quota_ops.kafka.cluster import open_cluster
    from quota_ops.kafka.connection import find_connection

    policy = read_policy(options.find_cluster(cluster, desired_state))
    found = find_connection(policy.connection, file=connection_file)
    with open_cluster(found, cluster_id=policy.cluster_id) as opened:
        return opened.describe(), f"{policy.cluster} ({policy.cluster_id})"
