"""What a cluster holds: asked of its brokers, or read from a snapshot that was taken of it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from quota_ops.cli import options
from quota_ops.model.errors import InvalidInput
from quota_ops.model.rows import StoredQuota

if TYPE_CHECKING:
    from quota_ops.kafka.cluster import Cluster
    from quota_ops.model.policy import Policy
    from quota_ops.store.snapshot import Snapshot


@contextmanager
def open_source(
    cluster: str | None, actual: Path | None, desired_state: Path, connection_file: Path | None
) -> Iterator[tuple["Cluster | Snapshot", str]]:
    """What can be asked for the stored quotas, and the words for where they are.

    With `actual` the cluster is not asked, and need not be named. Where it is named, the snapshot
    must be of that cluster.
    """
    from quota_ops.desired.read import read_policy

    if actual is not None:
        from quota_ops.store.snapshot import Snapshot

        snapshot = Snapshot.read(actual)
        if cluster is not None:
            policy = read_policy(options.find_cluster(cluster, desired_state))
            snapshot.require_cluster(policy.cluster_id)
            warn_unnamed(actual, snapshot.cluster_id, policy)
        yield snapshot, f"{actual} ({snapshot.cluster_id})" if snapshot.cluster_id else str(actual)
        return
    if cluster is None:
        raise InvalidInput("no cluster is named", "Name a CLUSTER, or a snapshot by --actual FILE.")
    from quota_ops.kafka.cluster import open_policy
    from quota_ops.kafka.connection import find_connection

    policy = read_policy(options.find_cluster(cluster, desired_state))
    found = find_connection(policy.connection, file=connection_file)
    with open_policy(policy, found) as opened:
        yield opened, f"{policy.cluster} ({policy.cluster_id})"


def warn_unnamed(actual: Path, cluster_id: str | None, policy: "Policy") -> None:
    """Say on stderr that a snapshot without an id may be of any cluster."""
    if cluster_id is None:
        click.echo(
            f"{actual} names no cluster: nothing shows that it is of {policy.cluster} "
            f"({policy.cluster_id}). A snapshot that describe writes now names it.",
            err=True,
        )


def describe_run(
    path: Path, run_store: str | None, connection_file: Path | None
) -> tuple[tuple[StoredQuota, ...], str, str]:
    """What a cluster holds now, left as `actual` in the folder of an earlier run; path and id."""
    from quota_ops.cli.running import connection, find_unwritten
    from quota_ops.model.entity import Entity
    from quota_ops.model.tables import ACTUAL
    from quota_ops.runs.chain import run_stages
    from quota_ops.runs.run import Run
    from quota_ops.store.parquet import to_rows
    from quota_ops.store.run_store import store_of

    folder, store = find_unwritten(path, "describe"), store_of(path, run_store)
    with connection(folder.policy, connection_file) as connect:
        run_stages(Run(folder, Path(), store, connect), ("describe",))
    rows = to_rows(folder.read_table(ACTUAL).select(["entity", "key", "value"]))
    stored = tuple(StoredQuota(Entity.parse(one), key, value) for one, key, value in rows)
    return stored, str(path), folder.policy().cluster_id
