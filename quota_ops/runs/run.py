"""A run with everything that its stages need, and the eight stages by name."""

import gc
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from quota_ops.desired.git.commit import BundleVersion, list_changes
from quota_ops.kafka.connection import Connection
from quota_ops.model.commit import Provenance
from quota_ops.model.errors import GitFailed, GuardsRefused
from quota_ops.model.plans.approval import Author, Decision, needs_approval
from quota_ops.model.plans.plan import Plan
from quota_ops.model.plans.policy import Policy
from quota_ops.model.quotas.alteration import Typed
from quota_ops.model.quotas.tables import LEDGER
from quota_ops.model.runs.progress import SILENT, Progress
from quota_ops.runs.approvals import find_approval, follow_decision
from quota_ops.stages.apply.approved_plan import build_approval_error
from quota_ops.stages.check import check_desired_state
from quota_ops.stages.diff import EMBEDDED, find_differences
from quota_ops.stages.plan import plan_changes
from quota_ops.stages.report.end_record import find_audit_connection
from quota_ops.stages.succession import begin, find_unverified_commit
from quota_ops.store.ledger.ledger import read_notes
from quota_ops.store.places.run_store import RunStore
from quota_ops.store.places.snapshot import Snapshot
from quota_ops.store.run.files import ALTER, CHANGES, ROLLBACK
from quota_ops.store.run.folder import RunFolder
from quota_ops.store.run.marks import mark
from quota_ops.store.run.state import mark_superseded
from quota_ops.usage.connection import PrometheusConnection, find_prometheus

if TYPE_CHECKING:
    import pyarrow as pa

    from quota_ops.kafka.cluster import Cluster


class Run(Struct, frozen=True):
    """A run and everything that its stages need; a stage opens the cluster with `connect`."""

    folder: RunFolder
    cluster_folder: Path
    """The folder of the YAML; Path() for a rollback, and for an earlier run."""
    connect: Callable[[], "Cluster"]
    engine: str = EMBEDDED
    find_audit: Callable[[str], Connection] = find_audit_connection
    """Looks up the connection to the audit topic by its name."""
    find_use: Callable[[str], PrometheusConnection] = find_prometheus
    """Looks up the connection to the Prometheus of the cluster by its name."""
    allow: Mapping[str, str] = {}
    author: Author | None = None
    """Who overrides the guards that `allow` names."""
    approve: str | None = None
    """The approved digest; None approves the plan that this very run has just made."""
    request_decision: Callable[[Plan], Decision] | None = None
    """Requests a decision on a plan that needs approval; None when no person can decide."""
    records_decision: bool = False
    """Whether a decision is requested and recorded even if the plan needs none."""
    progress: Progress = SILENT
    bundle: BundleVersion | None = None
    """The DAG bundle that the cluster's folder is in, where Airflow runs this."""
    must_know_commit: bool = False
    """Whether check fails when the commit cannot be read from Git, because this run may write."""
    skip_invalid: bool = True
    """Whether runs leave out invalid quotas files; a review shows them to their author."""
    typed: Typed | None = None
    """What a person typed in place of Git, if this run is an alter."""
    actual: Path | None = None
    """A snapshot to describe in place of the cluster, which is never validated or written."""


def start_command_run(store: RunStore, policy: Policy, provenance: Provenance) -> RunFolder:
    """Start a run with the policy that applies to it, and the commit of that policy."""
    path = store.new_run(policy.cluster)
    folder = RunFolder.start(path, cluster=policy.cluster, commit=None)
    folder.change_about(provenance=provenance)
    folder.leave_policy(policy)
    return folder


@contextmanager
def connect_once(
    policy: Callable[[], Policy], find_connection: Callable[[str], Connection]
) -> Iterator[Callable[[], "Cluster"]]:
    """Yield a function that opens a policy's cluster once; the end of the block closes it.

    `find_connection` looks up the policy's connection by name. Both arguments are called only when
    a stage needs the cluster.
    """
    with ExitStack() as stack:

        @cache
        def connect() -> "Cluster":
            from quota_ops.kafka.cluster import open_policy  # Kafka's clients

            made = policy()
            return stack.enter_context(open_policy(made, find_connection(made.connection)))

        yield connect


def _check(run: Run) -> None:
    check_desired_state(
        run.folder,
        run.cluster_folder,
        bundle=run.bundle,
        must_know_commit=run.must_know_commit,
        skip_invalid=run.skip_invalid,
    )


def _describe(run: Run) -> None:
    from quota_ops.stages.describe import describe_cluster  # Kafka's clients

    begin(run.folder)
    if run.actual is None:
        source: Cluster | Snapshot = run.connect()
    else:
        cluster_id = run.folder.policy().cluster_id
        source = Snapshot.read(run.actual).require_cluster(cluster_id).require_all()
    files = f"{run.cluster_folder}/"
    describe_cluster(
        run.folder, source, run.folder.records, files=files, skip_invalid=run.skip_invalid
    )
    if run.cluster_folder != Path():
        leave_changes(run.folder, run.cluster_folder, run.folder.read_table(LEDGER), run.bundle)


def leave_changes(
    folder: RunFolder, cluster_folder: Path, ledger: "pa.Table", bundle: BundleVersion | None = None
) -> None:
    """Write commits.json: what the commit of a run has and lacks of those that a ledger has."""
    notes, provenance = read_notes(ledger), folder.about().provenance
    written = find_unverified_commit(folder, ledger, notes.applied_by or 0)
    found = list_changes(
        cluster_folder, provenance, notes.commits, notes.equal, written=written, bundle=bundle
    )
    folder.write(CHANGES, found)


def _diff(run: Run) -> None:
    if run.folder.has(ROLLBACK):
        from quota_ops.runs.rollback import find_rollback_differences  # rarely needed

        find_rollback_differences(run.folder, run.engine)
    else:
        find_differences(run.folder, run.engine)


def _plan(run: Run) -> None:
    if run.typed is not None:
        from quota_ops.stages.plan.alter import plan_alter  # Kafka's clients

        plan_alter(run.folder, run.connect(), run.typed, run.allow)
        return
    try:
        plan_changes(run.folder, run.allow, run.author, find_use=run.find_use)
    except GuardsRefused:
        if run.request_decision is None or not needs_approval(run.folder.plan()):
            raise


def _validate(run: Run) -> None:
    from quota_ops.stages.validate import validate_plan  # Kafka's clients

    validate_plan(run.folder, run.connect())


def _apply(run: Run) -> None:
    from quota_ops.runs.dead_runs import settle_dead_runs  # only for runs that write
    from quota_ops.stages.apply import apply_plan  # Kafka's clients
    from quota_ops.stages.apply.alter import apply_alter  # Kafka's clients

    if failure := run.folder.about().provenance.failure:  # so it may be an old commit
        remedy = "Nothing was written. Fix Git, or pass --commit, and plan again."
        raise GitFailed(failure, remedy)
    mark(run.folder.place)
    # Why not by a file: one in the folder of a run must not make its plan need no approval.
    if run.typed is not None:
        write: Callable[[RunFolder, Cluster], object] = apply_alter
    else:
        approved = None if is_waiting(run) else _find_approved(run)
        write = partial(apply_plan, approved=approved, progress=run.progress)
    settle_dead_runs(run.folder, run.connect(), run.find_audit)
    write(run.folder, run.connect())


def is_waiting(run: Run) -> bool:
    """Return whether guards block the plan, it has repairs to write, and nobody can decide now."""
    plan = run.folder.plan()
    can_decide = run.request_decision is not None
    return bool(plan.repairs) and not (can_decide or find_approval(run.folder, plan))


def _find_approved(run: Run) -> str:
    """Return the approved digest; if the plan needs approval, find or request a decision first."""
    made = run.folder.plan()
    if needs_approval(made) or run.records_decision:
        decision = find_approval(run.folder, made)
        decision = decision or (run.request_decision(made) if run.request_decision else None)
        if decision is None:
            raise build_approval_error(run.folder, made)
        follow_decision(run.folder, decision, run.find_use)
    return made.digest if run.approve is None else run.approve


def _verify(run: Run) -> None:
    # Kafka's clients
    from quota_ops.stages.verify import verify_alteration, verify_cluster

    if run.folder.has(ALTER):
        verify_alteration(run.folder, run.connect())
        return
    verify_cluster(run.folder, run.connect(), run.progress)


def _report(run: Run) -> None:
    from quota_ops.stages.report.forms import write_reports  # templates

    write_reports(run.folder, run.find_audit)


STAGE_FUNCTIONS: Mapping[str, Callable[[Run], None]] = {
    "check": _check,
    "describe": _describe,
    "diff": _diff,
    "plan": _plan,
    "validate": _validate,
    "apply": _apply,
    "verify": _verify,
    "report": _report,
}


def run_stage(run: Run, stage: str) -> None:
    """Run one stage, which reads each artifact of the run once, and record how it ended.

    A stage that cannot reach the cluster is recorded as failed.
    """
    run = replace(run, folder=run.folder.with_cache())
    with run.folder.stage(stage), _without_garbage_collection():
        if stage in {"apply", "verify"}:
            mark_superseded(run.folder)
        STAGE_FUNCTIONS[stage](run)


@contextmanager
def _without_garbage_collection() -> Iterator[None]:
    """Collect no garbage: a stage frees little, and half of its time is spent looking for it.

    `make bench` measures commands, whose process never collects; this is for Airflow and Python.
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()
