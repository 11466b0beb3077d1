"""The past plans that the guards of a policy would have blocked."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from quota_ops.model.history.history import HistoryRow
from quota_ops.model.plans.client_effects import InventoryEffects, OwnerEffects
from quota_ops.model.plans.effect import Risk
from quota_ops.model.plans.guard import NOT_TRIED, Guard, GuardFinding
from quota_ops.model.plans.guard_rules import EarlierRuns, is_blocked_by, judge
from quota_ops.model.plans.policy import Policy
from quota_ops.model.plans.strict_policy import Grounds
from quota_ops.model.quotas.difference import WRITES, Action, Difference, Kind
from quota_ops.model.quotas.rows import Key


class PastPlan(NamedTuple):
    """A plan of the history; runs that planned the same writes one after the other are one."""

    cluster: str
    first: HistoryRow
    """The row of the first run that planned it."""
    runs: int
    writes: tuple[Difference, ...]
    earlier: EarlierRuns
    risks: Mapping[Key, Risk]
    """What its writes do to clients; it lacks those of runs that did not record it."""
    clients: InventoryEffects | None
    """The clients that lose, of the run that had most; None if no run counted them."""

    @property
    def not_tried(self) -> frozenset[Guard]:
        """The guards that compare with what the history lacks of this plan."""
        return frozenset(NOT_TRIED) | ({Guard.BLAST_RADIUS} if self.clients is None else set())

    def merge(self, later: "PastPlan") -> "PastPlan":
        """Return the plan with a later run of the same writes."""
        counted = [effects for effects in (self.clients, later.clients) if effects is not None]
        return self._replace(
            runs=self.runs + later.runs,
            risks={**later.risks, **self.risks},
            clients=max(counted, key=lambda effects: effects.total.losing, default=None),
        )


class Blocked(NamedTuple):
    """A guard that would have blocked a plan, and how many rows of each owner it is about."""

    plan: PastPlan
    finding: GuardFinding
    owners: tuple[tuple[str | None, int], ...]


def list_plans(ends: Iterable[HistoryRow]) -> tuple[PastPlan, ...]:
    """Return the plans that wrote or would have written, from the rows of ends, in order."""
    found: dict[tuple[str, str, str], list[HistoryRow]] = {}
    for row in ends:
        found.setdefault((row.ended, row.cluster, row.run), []).append(row)
    plans: dict[str, list[PastPlan]] = {}
    # Runs that ended in one second are ordered by number.
    for rows in sorted(found.values(), key=lambda rows: (rows[0].ended, rows[0].sequence or 0)):
        for plan in _read_plan(rows):
            of_cluster = plans.setdefault(plan.cluster, [])
            if of_cluster and of_cluster[-1].writes == plan.writes:
                of_cluster[-1] = of_cluster[-1].merge(plan)
            else:
                of_cluster.append(plan)
    return tuple(
        sorted(
            (plan for some in plans.values() for plan in some), key=lambda plan: plan.first.ended
        )
    )


def _read_plan(rows: Sequence[HistoryRow]) -> Iterator[PastPlan]:
    run = next((row for row in rows if row.entity is None), None)
    written = (row for row in rows if row.entity is not None and row.action in set(WRITES))
    writes = tuple(sorted(map(_to_difference, written), key=lambda difference: difference.id))
    if run is not None and run.declared is not None and writes:
        owners = {row.owner: row.owned or 0 for row in rows if row.entity is not None}
        earlier = EarlierRuns(run.owned or 0, owners, policy=None, commits=())
        risks = {
            Key(str(row.entity), str(row.key)): _read_risk(row.cut, row)
            for row in rows
            if row.entity is not None and row.cut is not None
        }
        yield PastPlan(run.cluster, run, 1, writes, earlier, risks, _read_clients(run))


def _read_risk(cut: float, row: HistoryRow) -> Risk:
    return Risk(cut, row.rise or 1.0, bool(row.unlimited), foreign=row.foreign)


def _read_clients(run: HistoryRow) -> InventoryEffects | None:
    if run.clients is None or run.losing is None:
        return None
    nothing = OwnerEffects(None, *[0] * (len(OwnerEffects._fields) - 1))
    return InventoryEffects("", (nothing._replace(clients=run.clients, losing=run.losing),))


def _to_difference(row: HistoryRow) -> Difference:
    return Difference(
        row.cluster,
        str(row.entity),
        str(row.key),
        Kind(str(row.kind)),
        Action(str(row.action)),
        before=row.actual,
        after=row.desired,
    )._replace(owner=row.owner)


def judge_plans(plans: Iterable[PastPlan], policy: Policy) -> tuple[Blocked, ...]:
    """Return what the guards of a policy would have blocked, by the rules of every plan.

    The guards in `PastPlan.not_tried` never block here: the history lacks what they compare.
    For a row that is not in its `risks`, the guards of limits compare the values of the row.
    """
    return tuple(
        Blocked(plan, finding, _count_owners(plan, finding, policy))
        for plan in plans
        for finding in judge(
            plan.writes,
            policy=policy,
            commit=None,
            desired=plan.first.declared or 0,
            earlier=plan.earlier,
            risks=plan.risks,
            clients=plan.clients,
        )
    )


def count_stopped_then(plans: Iterable[PastPlan]) -> int:
    """Return how many plans a guard that is not tried blocked at the time, overridden or not."""
    return sum(
        not plan.not_tried.isdisjoint(
            f"{plan.first.blocked_by or ''},{plan.first.overridden or ''}".split(",")
        )
        for plan in plans
    )


def count_unknown(plans: Sequence[PastPlan]) -> tuple[int, int]:
    """Return how many plans lack counts of clients, and how many lack effects of their writes."""
    without_clients = sum(plan.clients is None for plan in plans)
    without_effects = sum(
        not plan.risks.keys() >= {row.id for row in plan.writes} for plan in plans
    )
    return without_clients, without_effects


def _count_owners(
    plan: PastPlan, finding: GuardFinding, policy: Policy
) -> tuple[tuple[str | None, int], ...]:
    counts: dict[str | None, int] = {}
    for row in plan.writes:
        if is_blocked_by(finding.guard, row, Grounds(policy), plan.risks.get(row.id)):
            counts[row.owner] = counts.get(row.owner, 0) + 1
    return tuple(sorted(counts.items(), key=lambda item: (-item[1], str(item[0]))))
