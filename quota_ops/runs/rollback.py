"""rollback: a run whose desired rows are the values that an earlier run replaced, not YAML."""

from collections.abc import Iterable, Iterator

from quota_ops.model.commit import rollback_of
from quota_ops.model.errors import Refused
from quota_ops.model.plans import ledger_edits
from quota_ops.model.plans.approval import find_login
from quota_ops.model.plans.client_effects import INVENTORY
from quota_ops.model.plans.plan import Plan
from quota_ops.model.plans.policy import Policy
from quota_ops.model.plans.scope import Scope
from quota_ops.model.quotas.difference import FOREIGN_KINDS
from quota_ops.model.quotas.quota import same
from quota_ops.model.quotas.rows import DesiredRow, LedgerRow, Side
from quota_ops.model.quotas.tables import ACTUAL, DESIRED, DIFFERENCES, LEDGER, OVERRIDES
from quota_ops.model.runs.rollback import Rollback, Undone
from quota_ops.model.runs.stages import Life
from quota_ops.model.stored import from_json
from quota_ops.model.text import command
from quota_ops.stages.diff import find_differences
from quota_ops.store.ledger import ledger
from quota_ops.store.places.numbered_files import read_file
from quota_ops.store.places.run_store import RunStore
from quota_ops.store.run.files import ALTER, DESCRIBED, PLAN, ROLLBACK
from quota_ops.store.run.folder import RunFolder
from quota_ops.store.run.names import find_last_write
from quota_ops.store.run.state import RunState


def start_rollback(store: RunStore, earlier: RunFolder, *, by: str, reason: str) -> RunFolder:
    """Start a run that rolls back an earlier one.

    Writes rollback.json, policy.json and desired.parquet. The policy is the one that was last
    applied, so that no checkout is needed. Raises Refused, and starts no run, when the earlier run
    wrote nothing, or was not verified; InvalidInput when the earlier run is damaged.
    """
    cluster, policy = earlier.about().cluster, earlier.policy()
    if earlier.has(ALTER):
        raise _refuse_alter(store, earlier)
    found = ledger.read(store.of_cluster(policy.cluster_id))
    rollback = _find_changes(earlier, found.rows, by, reason)
    applied = found.notes.policy
    place = store.new_run(cluster)
    folder = RunFolder.start(place, cluster=cluster, commit=rollback_of(rollback.run))
    with folder.stage("check"):
        last = policy if applied is None else from_json(Policy, applied)
        folder.leave_policy(last)
        folder.write(ROLLBACK, rollback)
        folder.write_table(DESIRED, list(_desired_rows(last.cluster_id, rollback)))
        if earlier.has(INVENTORY.file):
            (folder.place / INVENTORY.file).create(read_file(earlier.place / INVENTORY.file))
        return folder


def _find_changes(earlier: RunFolder, known: Iterable[LedgerRow], by: str, reason: str) -> Rollback:
    about, state = earlier.about(), RunState(earlier)
    if state.life is not None:
        raise Refused(
            f"run {about.run} has not recorded its end", _explain_wait(state, about.cluster)
        )
    plan = earlier.plan() if earlier.has(PLAN) else None
    rows = tuple(_find_changed_rows(state, plan, known)) if plan else ()
    if plan is None or not rows:
        raise Refused(
            f"run {about.run} wrote no changes of a plan, so there is nothing to roll back",
            "The runs and how much each changed are listed by: quota-ops runs",
        )
    if (digest := earlier.read(PLAN).digest) != plan.digest:
        raise Refused(f"{earlier.place / PLAN} was changed after it was written")
    if not any(row.verified for row in rows):
        if all(row.unknown for row in rows):
            raise Refused(
                f"run {about.run} does not know which of its changes were written",
                "Let the next run settle it: "
                f"{command('reconcile', about.cluster)}. Then roll back.",
            )
        raise Refused(
            f"run {about.run} was not verified, so the rows to roll back are unknown",
            f"Verify it first: {command('verify', run=earlier.place)}",
        )
    return Rollback(about.run, about.commit, digest, by, reason, rows, find_login())


def _refuse_alter(store: RunStore, earlier: RunFolder) -> Refused:
    about = earlier.about()
    cluster_id, other = earlier.policy().cluster_id, ""
    if planned := find_last_write(store, cluster_id, is_alter=False):
        run = f"{planned.about().cluster}/{planned.place.name}"
        other = f". The last run that wrote a plan: {command('rollback', run)}"
    return Refused(
        f"run {about.run} is an alter: a rollback undoes what a plan changed",
        f"Undo it: {command('alter', about.cluster, undo=about.run)}{other}",
    )


def _explain_wait(state: RunState, cluster: str) -> str:
    """Return what to do until a run that has not recorded its end can be rolled back."""
    if state.life is Life.RUNNING:
        return "It is running: wait until it has ended."
    settle = f"the next run settles it: {command('reconcile', cluster)}. Then roll back."
    return f"Its process has ended: {settle}"


def find_rollback_differences(folder: RunFolder, engine: str) -> None:
    """Write desired, differences and overrides of the rows that can be rolled back, and no others.

    The comparison is the same as for any run; it takes every other managed row for one to be
    cleared, so rows that the rollback does not change are dropped.
    """
    policy = folder.policy()
    rollback = folder.read(ROLLBACK).compare_with_cluster(
        folder.read_values(ACTUAL),
        {row.id: row for row in folder.read_rows(LEDGER) if row.state == ledger_edits.VERIFIED},
        Scope(policy).explain_unwritable,
    )
    folder.write_table(DESIRED, list(_desired_rows(policy.cluster_id, rollback)))
    find_differences(folder, engine)
    selected = {row.id for row in rollback.taken}
    differences = [row for row in folder.differences() if row.id in selected]
    batches = sorted({row.batch for row in differences if row.batch is not None})
    differences = [
        row if row.batch is None else row._replace(batch=batches.index(row.batch) + 1)
        for row in differences
    ]
    folder.write_table(DIFFERENCES, differences)
    overrides = folder.read_rows(OVERRIDES)
    taken = [row for row in overrides if row.side != Side.LEAVING or row.id in selected]
    folder.write_table(OVERRIDES, taken)
    folder.write(ROLLBACK, rollback.planned(differences))


def _desired_rows(cluster_id: str, rollback: Rollback) -> Iterator[DesiredRow]:
    place = rollback_of(rollback.run)
    for row in rollback.taken:
        if row.before is not None:
            yield DesiredRow(
                cluster_id, row.entity, row.key, row.before, row.owner, rollback.reason, place, 0
            )


def _find_changed_rows(state: RunState, plan: Plan, known: Iterable[LedgerRow]) -> Iterator[Undone]:
    """Yield the rows that a run wrote or may have written, and whether they were verified since.

    A later run may have verified rows of a run that died before it read them back.
    """
    written, unknown = state.written, state.unknown
    verified = state.find_verified(written)
    known = tuple(known)
    # Brokers did not apply these, but the cluster stored them.
    lost = {row.id: row.value for row in state.folder.read(DESCRIBED).lost}
    states = {row.id: row.value for row in known if row.state == ledger_edits.VERIFIED}
    current = ledger_edits.find_current(known)
    for row in plan.writes:
        key = row.id
        if key in written or key in unknown:
            is_target = same(states.get(key), row.target)
            yield Undone(
                *key,
                lost.get(key, row.before),
                row.target,
                row.owner,
                verified=key in verified or (key not in current and is_target),
                foreign=row.kind in FOREIGN_KINDS,
                unknown=key in unknown,
            )
