"""Runs that died while they wrote, or ended with unknown rows, and how a later run settles them."""

from collections.abc import Callable
from contextlib import ExitStack, suppress

from msgspec.structs import replace

from quota_ops.kafka.cluster import Cluster
from quota_ops.kafka.connection import Connection
from quota_ops.model.errors import Claimed, InvalidInput
from quota_ops.model.quotas.rows import Stored, find_unequal
from quota_ops.model.runs.outcome import Outcome, Status, settle_unknown
from quota_ops.model.runs.stages import DIED, StageResult, StageStatus
from quota_ops.model.runs.verification import Settlement
from quota_ops.store.places.run_store import store_of
from quota_ops.store.run import marks
from quota_ops.store.run.claim import claim_run
from quota_ops.store.run.files import APPLIED, SETTLEMENT
from quota_ops.store.run.folder import RunFolder
from quota_ops.store.run.names import read_id
from quota_ops.store.run.state import RunState


def settle_dead_runs(
    by: RunFolder, cluster: Cluster, find_audit: Callable[[str], Connection]
) -> None:
    """Record the end of every run that died on this cluster, before the run `by` writes.

    Rows of its last request become accepted when the cluster stores them. The others stay unknown,
    because they may still arrive. Runs that ended with unknown rows are settled in the same way.
    The run that claims a dead run settles it. Raises ClusterTrouble when the cluster cannot be
    described.
    """
    marked = (run for run in marks.find_marked_runs(store_of(by.place).root) if run != by.place)
    own = (RunFolder(run) for run in marked if read_id(run) == cluster.cluster_id)
    with ExitStack() as claims:
        if dead := [*filter(None, (_claim_dead(run, claims) for run in own))]:
            stored = cluster.describe_values()  # after the claims: nobody writes for them any more
            for run in dead:
                with suppress(InvalidInput):  # a damaged run cannot be settled
                    _settle(run, by.about().run, stored, find_audit)


def _claim_dead(run: RunFolder, claims: ExitStack) -> RunFolder | None:
    """Claim a run that is dead or ended with unknown rows; None for any other, or if damaged."""
    with suppress(Claimed, InvalidInput):
        if marks.is_unsettled(run.place) or RunState(run).is_cut_off:
            claimed = claims.enter_context(claim_run(run))
            if marks.is_marked(run.place):  # otherwise another run has just settled it
                return claimed
    return None


def _settle(
    run: RunFolder, by: str, stored: Stored, find_audit: Callable[[str], Connection]
) -> None:
    state = RunState(run)
    unknown = (row for row in state.outcomes if row.status is Status.UNKNOWN)
    rows = (row for outcome in unknown for row in outcome.rows)
    run.write(SETTLEMENT, Settlement(by, {row: stored.get(row) for row in rows}))
    if state.is_writing:
        # A new attempt: what verify compared before it counts no more.
        run.leave_outcomes(APPLIED, _find_settled(run, state.outcomes, stored, by))
        why = f"{DIED}; run {by} recorded its end"
        run.keep_end(StageResult("apply", StageStatus.KILLED, None, why))
    else:
        _settle_ended(state, by, stored)
    from quota_ops.stages.report.forms import write_reports  # templates, rarely needed here

    write_reports(run, find_audit)
    marks.unmark(run.place)


def _settle_ended(state: RunState, by: str, stored: Stored) -> None:
    run = state.folder
    if any(outcome.status is Status.UNKNOWN for outcome in state.outcomes):
        settled = _find_settled(run, state.outcomes, stored, by)
        run.write(APPLIED, replace(run.read(APPLIED), outcomes=settled))
        why = f"{state.apply.message or ''}\nRun {by} looked for the unknown rows.".lstrip()
        run.keep_end(replace(state.apply, message=why))


def _find_settled(
    run: RunFolder, outcomes: tuple[Outcome, ...], stored: Stored, by: str
) -> tuple[Outcome, ...]:
    """Return outcomes, of which the cluster's values settle the unknown ones."""
    targets = {row.id: row.target for row in run.differences()}
    unequal, missing = {*find_unequal(targets, stored)}, f"not on the cluster when run {by} looked"
    settled = settle_unknown(outcomes, unequal, f"found by run {by}", missing=missing)
    return tuple(settled)
