"""plan: check the differences with the guards, and give the plan a digest to approve."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime

from msgspec.structs import replace

from quota_ops.desired.pauses import find_pause
from quota_ops.model.errors import GuardsRefused, InvalidInput, QuotaOpsError
from quota_ops.model.plans.approval import Author, DecisionKind, find_login, mark_overridden
from quota_ops.model.plans.ceilings import Totals, judge_ceilings
from quota_ops.model.plans.client_effects import INVENTORY
from quota_ops.model.plans.effect import Effect
from quota_ops.model.plans.guard import Guard, GuardFinding, format_blocking, unknown_guards
from quota_ops.model.plans.guard_rules import EarlierRuns, judge, name_rows
from quota_ops.model.plans.ledger_edits import VERIFIED
from quota_ops.model.plans.plan import Plan, rank_by_risk
from quota_ops.model.plans.strict_policy import combine_strictly
from quota_ops.model.quotas.difference import Action, Difference
from quota_ops.model.quotas.quota import add_limits
from quota_ops.model.quotas.rows import DesiredRow, Key, LedgerRow
from quota_ops.model.quotas.tables import ACTUAL, DESIRED, LEDGER
from quota_ops.sql.client_effects import write_client_effects, write_unknown_effects
from quota_ops.stages.plan.earlier_runs import read_earlier_runs
from quota_ops.stages.plan.effects import find_plan_effects, write_effects
from quota_ops.stages.plan.findings import write_findings
from quota_ops.stages.plan.origins import leave_origins
from quota_ops.stages.plan.use import write_throttled, write_throttling
from quota_ops.store.ledger import decisions
from quota_ops.store.run.files import ALTER, CLIENT_COUNTS, DESCRIBED, ROLLBACK, THROTTLING
from quota_ops.store.run.folder import RunFolder
from quota_ops.usage.connection import PrometheusConnection, find_prometheus


def plan_changes(
    folder: RunFolder,
    allow: Mapping[str, str] | None = None,
    author: Author | None = None,
    earlier: EarlierRuns | None = None,
    *,
    others: Sequence[Difference] = (),
    find_use: Callable[[str], PrometheusConnection] = find_prometheus,
) -> Plan:
    """Write findings, origins and effects, where there are any, then plan.json.

    If cluster.yaml names an inventory, also writes the effects on its clients. If it names a source
    of use, also writes whom the cuts would have throttled; `find_use` looks up its connection.

    `allow` maps the name of each guard that `author` overrides to the reason. The override is
    recorded in the run store, and only that record overrides a guard. The guards compare with
    `earlier` or, without it, with the earlier runs that the ledger records. `others` are changes
    that are written before these, but are not of this plan. Raises GuardsRefused,
    after it has written the plan, when a guard blocks and is not overridden.
    """
    _check_names(allow or {})
    plan, earlier = assemble_plan(folder), earlier or read_earlier_runs(folder)
    _count_clients(folder, others)
    why = find_pause(plan.policy, datetime.now(UTC))
    plan = replace(plan, standstill=why, applied_policy=earlier.strict_policy)
    effects = find_plan_effects(folder, plan, others)
    write_throttling(folder, plan, effects, earlier, find_use=find_use)
    if earlier.others is None:  # a review has no page, and its branch may name any connection
        write_throttled(folder, plan, find_use=find_use)
    plan = plan.with_guards(judge_plan(folder, plan, earlier, effects, others))
    plan = override_guards(folder, plan, allow or {}, author or Author(None, find_login()))
    write_findings(folder, plan)
    leave_origins(folder, plan.differences)
    write_effects(folder, effects)
    folder.leave_plan(plan)  # last, because it is what a person approves
    refuse_unless_guards_pass(plan)
    return plan


def _count_clients(folder: RunFolder, others: Sequence[Difference]) -> None:
    """Write the effects on the clients of the inventory, unless Spark did; none without one.

    A rollback has the inventory of the run that it undoes, which may have had none. If the
    inventory cannot be read, the plan shows why, and a guard decides whether it may be written.
    """
    policy = folder.policy()
    is_missing = policy.inventory_in_git and not folder.has(INVENTORY.file)
    if policy.inventory is not None and not (is_missing and folder.has(ROLLBACK)):
        from quota_ops.sql.embedded_effects import EmbeddedEffects  # DuckDB

        try:
            targets = {row.id: row.target for row in others}
            write_client_effects(EmbeddedEffects(), folder, targets)
        except (QuotaOpsError, OSError) as error:
            write_unknown_effects(folder, error)


def assemble_plan(folder: RunFolder) -> Plan:
    """Return the plan of a run's differences, before any guard has checked it."""
    described = folder.read(DESCRIBED)
    return Plan(
        policy=folder.policy(),
        commit=folder.about().commit,
        differences=tuple(sorted(folder.differences(), key=rank_by_risk)),
        guards=(),
        desired=folder.count(DESIRED),
        actual=folder.count(ACTUAL) + len(described.lost),
        batches=len(folder.batches()),
        ledger=described.ledger,
        holds=described.holds,
        overridden=folder.count_overridden(folder.differences()),
    )


def override_guards(
    folder: RunFolder, plan: Plan, allow: Mapping[str, str], author: Author
) -> Plan:
    """Return the plan with its guard overrides; those in `allow` are recorded for `author`."""
    if plan.guards:
        plan = _apply_overrides(folder, plan)
        if allow:
            _record_overrides(folder, plan, allow, author)
            plan = _apply_overrides(folder, plan)
    return plan


def _apply_overrides(folder: RunFolder, plan: Plan) -> Plan:
    """Return the plan with the guard overrides that the run store records."""
    valid = decisions.find_valid_decisions(folder, plan)
    if folder.has(ALTER):  # an approval is of a plan, whose run uses it up
        valid = tuple(said for said in valid if said.said is DecisionKind.OVERRIDDEN)
    decisions.copy_to_run(folder, valid)
    return plan.with_guards(mark_overridden(plan.guards, valid))


def _record_overrides(
    folder: RunFolder, plan: Plan, allow: Mapping[str, str], author: Author
) -> None:
    """Record an override for each guard in `allow` that blocks and is not overridden yet."""
    new = [guard for guard in plan.refused if guard.guard in allow]
    for reason in dict.fromkeys(allow[guard.guard] for guard in new):
        shown = tuple(guard for guard in new if allow[guard.guard] == reason)
        override = decisions.new_decision(
            folder, plan, DecisionKind.OVERRIDDEN, author, reason, shown=shown
        )
        decisions.append(folder.records.approvals, override)


def judge_plan(
    folder: RunFolder,
    plan: Plan,
    earlier: EarlierRuns,
    effects: Mapping[Key, Effect],
    others: Sequence[Difference] = (),
) -> tuple[GuardFinding, ...]:
    """Return the findings of the guards that block a plan with these effects on clients.

    The totals of owners include `others`, as `plan_changes` has them.

    No inventory and no use that cannot be read blocks a rollback.
    """
    clients = folder.find(CLIENT_COUNTS)
    if clients and clients.trouble and folder.has(ROLLBACK):
        clients = None
    throttling = folder.find(THROTTLING)
    if throttling and throttling.is_partial and folder.has(ROLLBACK):
        throttling = None
    found = judge(
        plan.writes,
        policy=plan.policy,
        commit=plan.commit or folder.about().provenance.base,
        desired=plan.desired or int(folder.has(ROLLBACK)),  # a rollback does not read Git
        earlier=earlier,
        clients=clients,
        throttling=throttling,
        risks={row: effect.risk for row, effect in effects.items()},
    )
    ceilings = combine_strictly(earlier.strict_policy, plan.policy).ceilings
    if not ceilings:
        return found
    totals = _sum_by_owner((*_list_kept(folder, plan), *folder.read_rows(DESIRED)), others)
    return (*found, *judge_ceilings(plan.writes, totals, ceilings))


def _list_kept(folder: RunFolder, plan: Plan) -> Iterator[LedgerRow]:
    """Yield the managed rows that stay: of an invalid file, and all others beside a rollback."""
    left = {row.id for row in plan.differences if row.action in {Action.CLEAR, Action.FORGET}}
    for row in folder.read_rows(LEDGER):
        if row.state == VERIFIED and row.value is not None and row.id not in left:
            yield row


def _sum_by_owner(rows: Iterable[DesiredRow | LedgerRow], others: Iterable[Difference]) -> Totals:
    """Return what each owner declares now or, if that is more, when temporary values have ended."""
    declared = {row.id: (row.owner, row.value or 0.0, row.returns_to) for row in rows}
    declared |= {row.id: (row.owner, row.target or 0.0, row.returns_to) for row in others}
    now, later = (defaultdict[tuple[str | None, str], list[float]](list) for _ in range(2))
    for (_, key), (owner, value, returns_to) in declared.items():
        now[owner, key].append(value)
        later[owner, key].append(value if returns_to is None else returns_to)
    return {
        of_key: max(add_limits(values), add_limits(later[of_key])) for of_key, values in now.items()
    }


def refuse_unless_guards_pass(plan: Plan) -> None:
    """Raise GuardsRefused when a guard blocks the plan and is not overridden."""
    if plan.refused:
        blocking, remedy = format_blocking(
            plan.refused, name_rows(plan.repairs) if plan.repairs else ""
        )
        what = "guards block this plan"
        if not plan.can_be_approved:
            what = "cluster.yaml sets approval: never, so only --allow overrides guards"
        raise GuardsRefused(f"{what}: {blocking}", remedy)


def _check_names(allowed: Mapping[str, str]) -> None:
    if unknown := unknown_guards(allowed):
        raise InvalidInput(
            f"{', '.join(unknown)} is not a guard", f"The guards are {', '.join(Guard)}."
        )
    if nameless := [guard for guard, reason in allowed.items() if not reason.strip()]:
        raise InvalidInput(f"--allow {nameless[0]} needs a reason", "Add --reason TEXT.")
