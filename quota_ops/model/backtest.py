"""Which past plans the guards of a policy would have blocked."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from quota_ops.model.difference import WRITES, Action, Difference, Kind
from quota_ops.model.guard import Guard, GuardFinding
from quota_ops.model.guard_rules import EarlierRuns, is_blocked_by, judge
from quota_ops.model.history import HistoryRow
from quota_ops.model.policy import Policy

NOT_TRIED = (
    Guard.BLAST_RADIUS,
    Guard.UNPROTECTED,
    Guard.POLICY_CHANGED,
    Guard.WENT_BACK,
    Guard.OLD_LEDGER,
)
"""The guards that compare with what the history lacks: inventories, policies, commits, ledgers."""


class PastPlan(NamedTuple):
    """A plan of the history; runs that planned the same writes one after the other are one."""

    cluster: str
    first: HistoryRow
    """The row of the first run that planned it."""
    runs: int
    writes: tuple[Difference, ...]
    earlier: EarlierRuns


class Blocked(NamedTuple):
    """A guard that would have blocked a plan, and the rows per owner because of which."""

    plan: PastPlan
    finding: GuardFinding
    owners: tuple[tuple[str | None, int], ...]


def list_plans(ends: Iterable[HistoryRow]) -> tuple[PastPlan, ...]:
    """Return the plans that wrote or would have written, from the rows of ends, in order."""
    found: dict[tuple[str, str, str], list[HistoryRow]] = {}
    for row in ends:
        found.setdefault((row.ended, row.cluster, row.run), []).append(row)
    plans: dict[str, list[PastPlan]] = {}
    for _, rows in sorted(found.items()):
        for one in _read_plan(rows):
            of_cluster = plans.setdefault(one.cluster, [])
            if of_cluster and of_cluster[-1].writes == one.writes:
                of_cluster[-1] = of_cluster[-1]._replace(runs=of_cluster[-1].runs + 1)
            else:
                of_cluster.append(one)
    return tuple(
        sorted((one for some in plans.values() for one in some), key=lambda one: one.first.ended)
    )


def _read_plan(rows: Sequence[HistoryRow]) -> Iterator[PastPlan]:
    run = next((row for row in rows if row.entity is None), None)
    writes = tuple(sorted(map(_to_difference, filter(_is_written, rows)), key=lambda one: one.id))
    if run is not None and run.declared is not None and writes:
        owners = {row.owner: row.owned or 0 for row in rows if row.entity is not None}
        earlier = EarlierRuns(run.owned or 0, owners, policy=None, commits=())
        yield PastPlan(run.cluster, run, 1, writes, earlier)


def _is_written(row: HistoryRow) -> bool:
    return row.entity is not None and row.action in set(WRITES)


def _to_difference(row: HistoryRow) -> Difference:
    return Difference.of_values(
        (row.cluster, str(row.entity), str(row.key)),
        Kind(str(row.kind)),
        Action(str(row.action)),
        before=row.actual,
        after=row.desired,
    )._replace(owner=row.owner)


def judge_plans(plans: Iterable[PastPlan], policy: Policy) -> tuple[Blocked, ...]:
    """Return what the guards of a policy would have blocked, by the rules of every plan.

    Only the plan's rows and the ledger's counts are known. So NOT_TRIED never block here, and `cut`
    sees the value of a row, but not the limits that clients get from other quotas.
    """
    return tuple(
        Blocked(one, finding, _count_owners(one, finding, policy))
        for one in plans
        for finding in judge(
            one.writes,
            policy=policy,
            commit=None,
            desired=one.first.declared or 0,
            earlier=one.earlier,
        )
    )


def count_stopped_then(plans: Iterable[PastPlan]) -> int:
    """Return how many plans a guard of NOT_TRIED blocked at the time, overridden or not."""
    names = (f"{one.first.blocked_by or ''},{one.first.overridden or ''}" for one in plans)
    return sum(not set(NOT_TRIED).isdisjoint(one.split(",")) for one in names)


def _count_owners(
    plan: PastPlan, finding: GuardFinding, policy: Policy
) -> tuple[tuple[str | None, int], ...]:
    counts: dict[str | None, int] = {}
    for row in plan.writes:
        if is_blocked_by(finding.guard, row, policy):
            counts[row.owner] = counts.get(row.owner, 0) + 1
    return tuple(sorted(counts.items(), key=lambda one: (-one[1], str(one[0]))))
