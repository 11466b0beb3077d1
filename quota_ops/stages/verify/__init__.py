"""verify: query all brokers until they agree or a deadline passes; then update the ledger."""

from collections.abc import Container, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress

from quota_ops.kafka.cluster import Cluster
from quota_ops.model.clusters.cluster_facts import KnownBrokers
from quota_ops.model.errors import InvalidInput, Refused
from quota_ops.model.plans.ledger_edits import CLEARED, settle
from quota_ops.model.quotas.difference import WRITES, Action, Difference, Kind
from quota_ops.model.quotas.rows import Key, LostLimit, Side, Targets
from quota_ops.model.quotas.tables import DESIRED, DIFFERENCES, HOLDS
from quota_ops.model.runs.outcome import find_open, find_unwritten, find_written
from quota_ops.model.runs.progress import SILENT, Progress
from quota_ops.model.text import command, counted, name_first, plural
from quota_ops.stages.describe.absent_brokers import read_known_brokers
from quota_ops.stages.plan.origins import leave_origins
from quota_ops.stages.succession import read_later_values, why_lost, why_overtaken
from quota_ops.stages.verify.brokers import FEW, ReadBack, raise_unless_agreed, read_back
from quota_ops.stages.verify.ledger_update import AppliedRun, update_ledger
from quota_ops.stages.verify.overtaken import format_remedy
from quota_ops.store.ledger import ledger
from quota_ops.store.run.files import APPLIED, DESCRIBED, PLAN
from quota_ops.store.run.folder import RunFolder
from quota_ops.store.run.state import RunState

_UNTOUCHED = frozenset({Action.REPORT, Action.HELD})


def verify_cluster(folder: RunFolder, cluster: Cluster, progress: Progress = SILENT) -> None:
    """Compare the rows of each broker with Git, and write verification.json.

    After an apply, the ledger records as verified the rows that every responding broker stores.
    Raises Refused when a row differs, when a broker does not respond before the deadline, when a
    later run applies (immediately), and when the newest file of the ledger was lost; without a plan
    also when a cleared row has returned, when rows have left Git since, and when limits are not in
    force. Raises Unreachable when no broker responds; WrongCluster when an address leads to another
    cluster.
    """
    differences = folder.differences() if folder.has(DIFFERENCES.file) else ()
    has_plan, has_applied = folder.has(PLAN), folder.has(APPLIED)
    run = AppliedRun(
        folder.about(),
        folder.policy(),
        differences if has_plan else (),  # without a plan every row is compared
        folder.outcomes(APPLIED),
    )
    known = ledger.read(folder.records).notes.brokers
    held = set(folder.read_table(HOLDS)["entity"].to_pylist())
    unwritten = find_unwritten(run.outcomes)
    left = _list_held(folder, folder.read_values(DESIRED), held) if held else frozenset()
    if not has_plan:
        leave_origins(folder, [row for row in differences if row.kind is Kind.OVERRIDING])
    targets, skipped = find_targets(folder.read_values(DESIRED), run.differences, left, unwritten)
    undeclared = [
        row
        for row in differences
        if row.action is Action.CLEAR and row.before is not None
        if row.id in unwritten or not has_applied
    ]

    def is_overtaken() -> bool:
        return has_applied and why_overtaken(folder, ledger.read(folder.records)) is not None

    read = read_back(
        cluster,
        run.policy,
        targets,
        known,
        progress=progress,
        last_written=run.last_written,
        is_overtaken=is_overtaken,
        skipped=skipped,
    )
    refusal = None
    if has_applied and read.stored:
        live = [broker.id for broker in cluster.brokers]
        brokers = known.after(run.about.run, live, read.registered, read.metadata.absent)
        refusal = _record_verified(folder, run, read, brokers)
    read.write(folder, undeclared)
    if refusal is not None:
        raise refusal
    raise_unless_agreed(
        read.brokers,
        read.wrong_rows,
        others=describe_late_writes(differences)
        + _describe_undeclared(() if has_plan else undeclared),
        retry=command("verify", run=folder.place)
        if has_applied
        else command("verify", run.about.cluster),
        sent={row for outcome in run.outcomes for row in outcome.rows} if has_applied else None,
    )
    if not has_applied:
        refuse_lost([row for row in folder.read(DESCRIBED).lost if row.id in targets])
    if not has_plan:
        refuse_undeclared(undeclared)


def _record_verified(
    folder: RunFolder, run: AppliedRun, read: ReadBack, brokers: KnownBrokers
) -> Refused | None:
    """Update the ledger, and return why the values of this run are not the last ones, or None."""
    known = ledger.read(folder.records)
    lost, overtaken = why_lost(folder, known), why_overtaken(folder, known)
    is_last = (lost, overtaken) == (None, None)
    commits = known.notes.commits
    update_ledger(folder, run, read, commits=commits, brokers=brokers, is_last=is_last)
    if overtaken is not None:
        wanted, rows = read_later_values(folder), ledger.read(folder.records).rows
        return Refused(overtaken, format_remedy(run, read.stored, rows, wanted))
    if lost is not None:
        return Refused(
            f"{lost}: what runs have recorded there is missing",
            "The rows that this run has read back are recorded. Check that the run store keeps what"
            " it confirms, and that nobody has restored an older copy.",
        )
    return None


def verify_alteration(folder: RunFolder, cluster: Cluster) -> None:
    """Write verification.json: the brokers that store what an alter has written, or may have.

    The ledger forgets what was read back and no request can still bring. Raises as `verify_cluster`
    when a broker differs or does not respond; writes nothing if nothing was written.
    """
    state = RunState(folder)
    sent = find_written(state.outcomes) | state.unknown
    targets = {row.id: row.target for row in folder.differences() if row.id in sent}
    if not targets:
        return
    known, (last, _) = read_known_brokers(folder.records), [*targets][-1]
    read = read_back(cluster, folder.policy(), targets, known, last_written=last)
    read.write(folder)
    if read.stored:
        run, unanswered, found = folder.about().run, find_open(state.outcomes), read.verified
        with suppress(InvalidInput):  # a damaged ledger stops the next run
            ledger.change(folder.records, lambda known: settle(known, run, unanswered, found))
    raise_unless_agreed(
        read.brokers,
        read.wrong_rows,
        others="",
        retry=command("verify", run=folder.place),
        wanted="the change",
    )


def describe_late_writes(differences: Iterable[Difference]) -> str:
    """Describe rows that an earlier run seems to have written late; empty if there are none."""
    late = [row for row in differences if row.kind is Kind.LATE_WRITE]
    return f" Late writes of earlier runs: {_list_rows(late)}." if late else ""


def _list_held(folder: RunFolder, desired: Iterable[Key], held: Container[str]) -> AbstractSet[Key]:
    """Return the rows of held entities that verify skips.

    A run that only compares skips none that the cluster stored as in Git, and that was in force.
    """
    rows = {key for key in desired if key.entity in held}
    if folder.has(PLAN) or not folder.has(DIFFERENCES.file):
        return rows
    differ = {row.id for row in folder.differences() if row.kind is not Kind.IN_SYNC}
    taken = (*folder.overrides(), *folder.overrides(Side.LEAVING))
    lost = (row.id for row in folder.read(DESCRIBED).lost)
    return rows & {*differ, *(row.declared_id for row in taken), *lost}


def _describe_undeclared(undeclared: Sequence[Difference]) -> str:
    """Describe rows that a run would clear; empty if there are none."""
    if not undeclared:
        return ""
    named = name_first(f"{row.entity} {row.key}" for row in undeclared)
    return f" {counted(len(undeclared), 'quota')} not in Git would be cleared: {named}."


def refuse_lost(lost: Sequence[LostLimit]) -> None:
    """Raise Refused for limits that every broker stores, and none applies."""
    if lost:
        are = plural(len(lost), "limit is", "limits are")
        named = name_first((f"{row.entity} {row.key} is {row.words}" for row in lost), between="; ")
        raise Refused(
            f"{len(lost):,} {are} not in force: {named}",
            "A run clears and sets what it may write of this: quota-ops plan shows it.",
        )


def refuse_undeclared(undeclared: Sequence[Difference]) -> None:
    """Raise Refused when cleared rows have returned, or rows stay that left Git.

    A run clears the former only after an override.
    """
    returned = [row for row in undeclared if row.kind is Kind.RETURNED]
    if undeclared and not returned:
        first = name_first(f"{row.entity} {row.key}" for row in undeclared)
        are = plural(len(undeclared), "quota that is", "quotas that are")
        raise Refused(
            f"{len(undeclared):,} {are} not in Git would be cleared: {first}",
            "quota-ops plan shows what they do to clients, and what keeps a run from it.",
        )
    if returned:
        are = plural(len(returned), "quota that is", "quotas that are")
        raise Refused(
            f"{len(returned):,} {are} not in Git came back: {_list_rows(returned)}",
            "To clear: quota-ops reconcile --allow returned --reason TEXT. "
            "To keep: declare it in Git, or quota-ops release --from-ledger.",
        )


def _list_rows(rows: Sequence[Difference]) -> str:
    return name_first(map(_describe_row, rows), FEW, between="; ")


def _describe_row(row: Difference) -> str:
    did = "cleared" if row.memory == CLEARED else "written"
    return f"{row.entity} {row.key}, {did} by run {row.run}"


def find_targets(
    desired: Mapping[Key, float],
    differences: Iterable[Difference],
    held: AbstractSet[Key],
    not_written: Container[Key],
) -> tuple[Targets, int]:
    """Return the rows that brokers must store, and how many rows the run skipped.

    The `held` rows are not targets, because a person may change them at any moment.
    Neither are the rows in `not_written`, which the controller did not accept.
    """
    targets: dict[Key, float | None] = {**desired}
    for key in held:
        targets.pop(key, None)
    skipped = set(held)
    for row in differences:
        key = row.id
        if row.action in _UNTOUCHED or key in not_written:
            targets.pop(key, None)
            if key in desired or row.action in WRITES or row.action is Action.HELD:
                skipped.add(key)
        elif row.action in {Action.CLEAR, Action.FORGET}:
            targets[key] = None
    return targets, len(skipped)
