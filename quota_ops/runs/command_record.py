"""Runs of commands without a plan: how they start, and the record of their end."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial

from quota_ops.kafka.cluster import Cluster, open_policy
from quota_ops.kafka.connection import Connection
from quota_ops.model.commit import Provenance
from quota_ops.model.errors import InvalidInput, QuotaOpsError
from quota_ops.model.moment import iso_utc
from quota_ops.model.plans.policy import Policy
from quota_ops.model.runs.report import StageStatus
from quota_ops.stages.report.audit_command import CommandEnd, Verb, format_command_end
from quota_ops.stages.report.end_record import find_audit_connection, record_end
from quota_ops.stages.report.history_record import record_command_history
from quota_ops.store.places.run_store import RunStore
from quota_ops.store.run.folder import RunFolder
from quota_ops.store.run.state import RunState

_STAGES = {
    Verb.ALTER: ("validate", "apply", "verify"),
    Verb.ADOPT: ("adopt",),
    Verb.RELEASE: ("release",),
}


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


def record_command_end(
    folder: RunFolder, verb: Verb, find_audit: Callable[[str], Connection] = find_audit_connection
) -> str | None:
    """Record a command's end; return why the audit topic or the history lacks it, or None."""
    record = folder.record()
    if record is None:
        raise InvalidInput(f"{folder.place} has no record of {verb}")
    state = RunState(folder)
    results = map(state.stage, _STAGES[verb])
    end = CommandEnd(
        verb,
        folder.about(),
        folder.policy().cluster_id,
        iso_utc(),
        tuple(result for result in results if result.status is not StageStatus.NOT_RUN),
        record,
        state.outcomes,
        folder.decisions(),
        state.verification,
    )
    form = partial(format_command_end, end)
    forgotten = record_command_history(folder, form(1))  # first, as in write_reports
    missed = record_end(folder, form, find_audit)
    return "; ".join(filter(None, (missed, forgotten))) or None
