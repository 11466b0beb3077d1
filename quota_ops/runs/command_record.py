"""Runs of commands without a plan: how they start."""

from quota_ops.model.commit import Provenance
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
