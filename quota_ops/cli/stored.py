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
    with open_cluster(found, cluster_id=policy.cluster_id, verify=policy.verify) as opened:
        return opened.describe(), f"{policy.cluster} ({policy.cluster_id})"


def describe_run(
    path: Path, run_store: str | None, connection_file: Path | None
) -> tuple[tuple[StoredQuota, ...], str]:
    """What a cluster holds now, left as `actual` in the folder of an earlier run."""
    from quota_ops.cli.running import connection, find_run
    from quota_ops.model.entity import Entity
    from quota_ops.model.tables import ACTUAL
    from quota_ops.parquet import to_rows
    from quota_ops.run_store import store_of
    from quota_ops.stages.chain import run_stages
    from quota_ops.stages.run import Run

    folder, store = find_run(path), store_of(path, run_store)
    with connection(folder.policy, connection_file) as connect:
        run_stages(Run(folder, Path(), store, connect), ("describe",))
    rows = to_rows(folder.read_table(ACTUAL).select(["entity", "key", "value"]))
    return tuple(StoredQuota(Entity.parse(one), key, value) for one, key, value in rows), str(path)
