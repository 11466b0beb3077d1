"""Runs that died while they wrote: a later run settles what they sent, and records their end."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress

from quota_ops.at_work import Life, is_overdue, life, marked_runs
from quota_ops.kafka.cluster import Cluster
from quota_ops.kafka.connection import Connection
from quota_ops.model.errors import InvalidInput
from quota_ops.model.outcome import Outcome, Status
from quota_ops.model.quota import same
from quota_ops.model.report import StageResult, StageStatus
from quota_ops.report.audit_verb import Verb
from quota_ops.run_folder import ALTER, APPLIED, RunFolder
from quota_ops.stages import audit_verb
from quota_ops.stages.attempt import outcomes_so_far
from quota_ops.stages.stored import Stored

Wanted = Mapping[tuple[str, str], float | None]


def settle(by: RunFolder, cluster: Cluster, find: Callable[[str], Connection]) -> None:
    """Record the end of every run that died on this cluster, before the run `by` writes.

    What its last request wrote is accepted where the cluster stores it; the rest stays unknown,
    since it may still arrive. Raises ClusterTrouble when the cluster cannot be described.
    """
    marked = (RunFolder(path) for path in marked_runs(by.path))
    if dead := [one for one in marked if _is_dead(one)]:
        stored = cluster.stored()
        for one in dead:
            with suppress(InvalidInput):  # of a damaged run nothing can be told
                if one.policy().cluster_id == cluster.cluster_id:
                    _settle(one, by.about()["run"], stored, find)


def _is_dead(run: RunFolder) -> bool:
    alive = life(run.path)
    return alive is not Life.AT_WORK and (
        (alive is Life.GONE and _has_not_ended(run)) or is_overdue(run.path)
    )


def _has_not_ended(run: RunFolder) -> bool:
    with suppress(InvalidInput):
        return run.stage_result("apply").status is StageStatus.NOT_ENDED
    return False


def _settle(run: RunFolder, by: str, stored: Stored, find: Callable[[str], Connection]) -> None:
    if _has_not_ended(run):
        outcomes = outcomes_so_far(run)
        run.leave_outcomes(APPLIED, tuple(_settled(outcomes, _wanted(run), stored, by)))
        why = f"it was killed; run {by} recorded its end"
        run.keep_end(StageResult("apply", StageStatus.INTERRUPTED, None, why))
    if run.has(ALTER):
        audit_verb.run(run, Verb.ALTER, find)
    else:
        from quota_ops.stages import report  # noqa: PLC0415 - templates, rarely needed here

        report.run(run, find)


def _settled(
    outcomes: tuple[Outcome, ...], wanted: Wanted, stored: Stored, by: str
) -> Iterator[Outcome]:
    for one in outcomes:
        if one.status is not Status.UNKNOWN:
            yield one
            continue
        keys = [(one.entity, key) for key in one.keys]
        if all(same(stored.get(key), wanted[key]) for key in keys if key in wanted):
            found = f"found by run {by}"
            yield one._replace(status=Status.ACCEPTED, code=0, error=None, message=found)
        else:
            yield one._replace(message=f"not on the cluster when run {by} looked")


def _wanted(run: RunFolder) -> Wanted:
    if run.has(ALTER):
        changes = run.read_as(ALTER, lambda told: list(told["changes"]))
        return {
            (row["entity"], row["key"]): None if row["after"] is None else float(row["after"])
            for row in changes
        }
    return {(row.entity, row.key): row.after for rows in run.batches().values() for row in rows}
