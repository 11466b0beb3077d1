"""Runs that died while they wrote, or ended with unknown rows, and how a later run settles them."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress

from quota_ops.kafka.cluster import Cluster
from quota_ops.kafka.connection import Connection
from quota_ops.model.errors import InvalidInput
from quota_ops.model.quotas.rows import Stored, Targets, find_unequal
from quota_ops.model.runs.outcome import Outcome, Status
from quota_ops.model.runs.stages import DIED, Life, StageResult, StageStatus
from quota_ops.model.runs.verification import Settlement
from quota_ops.model.stored import to_json
from quota_ops.stages.verify.record import follow_applied
from quota_ops.store.places.json_text import json_text
from quota_ops.store.places.place import Place
from quota_ops.store.places.run_store import store_of
from quota_ops.store.run import marks
from quota_ops.store.run.files import APPLIED, SETTLING
from quota_ops.store.run.folder import RunFolder
from quota_ops.store.run.names import read_id
from quota_ops.store.run.state import RunState


def settle_dead_runs(
    by: RunFolder, cluster: Cluster, find_audit: Callable[[str], Connection]
) -> None:
    """Record the end of every run that died on this cluster, before the run `by` writes.

    Rows of its last request become accepted when the cluster stores them. The others stay unknown,
    because they may still arrive. Runs that ended with unknown rows are settled in the same way.
    When several runs find a dead run, one of them settles it. Raises ClusterTrouble when the
    cluster cannot be described.
    """
    about = by.about()
    marked = [run for run in marks.find_marked_runs(store_of(by.place).root) if run != by.place]
    own = (run for run in marked if read_id(run) == cluster.cluster_id)
    if dead := [run for run in map(RunFolder, own) if _is_dead(run)]:
        stored = cluster.describe_values()
        for run in dead:
            with suppress(InvalidInput):  # a damaged run cannot be settled
                if _claim_settlement(run, by.place, marked, stored):
                    _settle(run, about.run, stored, find_audit)


def _is_dead(run: RunFolder) -> bool:
    if marks.is_unsettled(run.place):
        return marks.find_liveness(run.place) is not Life.RUNNING
    return RunState(run).is_cut_off


def _claim_settlement(run: RunFolder, by: Place, others: Sequence[Place], stored: Stored) -> bool:
    """Return whether the run `by` is the one that settles another: a file is created once.

    The file has what the cluster stores for each row of the run whose write got no response.

    One of `others` that is still running, and created the last such file, keeps the claim.
    """
    number = 1
    while run.has(SETTLING.of(number)):
        name = run.read(SETTLING.of(number)).by
        if any(other.name == name and _is_at_work(other) for other in others):
            return False
        number += 1
    unknown = (row for row in RunState(run).outcomes if row.status is Status.UNKNOWN)
    rows = (row for outcome in unknown for row in outcome.rows)
    found = Settlement(by.name, {row: stored.get(row) for row in rows})
    return (run.place / SETTLING.of(number)).create(json_text(to_json(Settlement, found)).encode())


def _is_at_work(run: Place) -> bool:
    is_over = (
        marks.is_unsettled(run) or marks.is_overdue(run) or marks.find_liveness(run) is Life.GONE
    )
    return marks.is_marked(run) and not is_over


def _settle(
    run: RunFolder, by: str, stored: Stored, find_audit: Callable[[str], Connection]
) -> None:
    state = RunState(run)
    if state.is_writing:
        _write_settled(run, state.outcomes, stored, by)
        why = f"{DIED}; run {by} recorded its end"
        run.keep_end(StageResult("apply", StageStatus.INTERRUPTED, None, why))
    else:
        _settle_ended(state, by, stored)
    from quota_ops.stages.report.forms import write_reports  # noqa: PLC0415 - templates, rarely needed here

    write_reports(run, find_audit)
    marks.unmark(run.place)


def _settle_ended(state: RunState, by: str, stored: Stored) -> None:
    run, before = state.folder, state.applied_digest
    if any(outcome.status is Status.UNKNOWN for outcome in state.outcomes):
        _write_settled(run, state.outcomes, stored, by)
        follow_applied(run, before)
        why = f"{state.apply.message or ''}\nRun {by} looked for the unknown rows.".lstrip()
        run.keep_end(state.apply._replace(message=why))


def _write_settled(run: RunFolder, outcomes: tuple[Outcome, ...], stored: Stored, by: str) -> None:
    """Write applied.json with the outcomes that the cluster's values settle."""
    targets = {row.id: row.after for rows in run.batches().values() for row in rows}
    settled = _settle_outcomes(outcomes, targets, stored, by)
    run.leave_outcomes(APPLIED, tuple(settled))


def _settle_outcomes(
    outcomes: tuple[Outcome, ...], targets: Targets, stored: Stored, by: str
) -> Iterator[Outcome]:
    for outcome in outcomes:
        if outcome.status is not Status.UNKNOWN:
            yield outcome
            continue
        if not find_unequal({row: targets[row] for row in outcome.rows if row in targets}, stored):
            found = f"found by run {by}"
            yield outcome._replace(status=Status.ACCEPTED, code=0, error=None, message=found)
        else:
            yield outcome._replace(message=f"not on the cluster when run {by} looked")
