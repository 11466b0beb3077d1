"""Runs of commands without a plan: how they start."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from quota_ops.kafka.cluster import Cluster, open_policy
from quota_ops.kafka.connection import Connection
from quota_ops.model.commit import Provenance
from quota_ops.model.errors import QuotaOpsError
from quota_ops.model.plans.policy import Policy
from quota_ops.store.places.run_store import RunStore
from quota_ops.store.run.folder import RunFolder


def start_command_run(store: RunStore, policy: Policy, provenance: Provenance) -> RunFolder:
    """Start a run with the policy that applies to it, and the commit of that policy."""
    path = store.new_run(policy.cluster)
    folder = RunFolder.start(path, cluster=policy.cluster, commit=None)
    folder.change_about(provenance=provenance)
    folder.leave_policy(policy)
    return folder


@contextmanager
def open_run_cluster(
    folder: RunFolder, stage: str, policy: Policy, connection: Connection
) -> Iterator[Cluster]:
    """Open the cluster of a policy; when it is unreachable, record the stage as failed."""
    with ExitStack() as stack:
        try:
            cluster = stack.enter_context(open_policy(policy, connection))
        except QuotaOpsError:
            with folder.stage(stage):
                raise
        yield cluster
