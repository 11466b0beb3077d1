"""The inputs of a command: a cluster by its name, the run store, and the stored quotas."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from quota_ops.cli.console import warn_unnamed
from quota_ops.desired.read import find_cluster, read_policy
from quota_ops.kafka.connection import Connection, find_connection
from quota_ops.model.errors import InvalidInput
from quota_ops.model.plans.policy import Policy
from quota_ops.store.places.run_store import ClusterStore, RunStore, find_run_store
from quota_ops.store.places.snapshot import Snapshot

if TYPE_CHECKING:
    from quota_ops.kafka.cluster import Cluster


class Session(Struct, frozen=True, dict=True):
    """What a command on one cluster works with, read when it is first needed.

    A CLUSTER is its name, or the path of its folder. Raises InvalidInput if there is none.
    """

    cluster: str | None
    desired_state: Path
    run_store: str | None = None
    connection_file: Path | None = None

    @cached_property
    def folder(self) -> Path:
        """The folder of the cluster."""
        if self.cluster is None:
            raise InvalidInput(
                "no cluster is specified", "Pass a CLUSTER, or a snapshot with --actual FILE."
            )
        return find_cluster(self.cluster, self.desired_state)

    @cached_property
    def policy(self) -> Policy:
        """Its cluster.yaml; no other file is read."""
        return read_policy(self.folder)

    @cached_property
    def store(self) -> RunStore:
        """The run store."""
        return find_run_store(self.run_store)

    @property
    def heading(self) -> str:
        """The name of the cluster for headings."""
        return f"{self.policy.cluster} ({self.policy.cluster_id})"

    @property
    def records(self) -> ClusterStore:
        """The ledger, claims, holds and approvals of the cluster."""
        return self.store.of_cluster(self.policy.cluster_id)

    def find_connection(self) -> Connection:
        """Find the connection to the cluster. Raises InvalidInput if there is none."""
        return find_connection(self.policy.connection, file=self.connection_file)

    @contextmanager
    def open_source(self, actual: Path | None) -> Iterator[tuple["Cluster | Snapshot", str]]:
        """Open the cluster or snapshot that has the stored quotas; yield it and its name.

        With `actual`, the cluster is not queried and need not be named. If it is named, the
        snapshot must be of that cluster.
        """
        if actual is None:
            from quota_ops.kafka.cluster import open_policy  # 0.2 s, which a snapshot does not need

            with open_policy(self.policy, self.find_connection()) as opened:
                yield opened, self.heading
            return
        snapshot = Snapshot.read(actual)
        if self.cluster is not None:
            snapshot.require_cluster(self.policy.cluster_id)
            warn_unnamed(actual, snapshot.cluster_id, self.policy)
        yield snapshot, f"{actual} ({snapshot.cluster_id})" if snapshot.cluster_id else str(actual)
