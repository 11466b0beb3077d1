"""The ways out of drift and of overriding quotas: how to revert, accept or hold them."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from functools import lru_cache
from itertools import islice
from shlex import quote
from typing import NamedTuple

from quota_ops.desired.export.quotas_text import spell_limit
from quota_ops.desired.yaml.cron import next_start
from quota_ops.model.plans.approval import approval_source, needs_approval
from quota_ops.model.plans.guard import Guard, GuardFinding, format_override
from quota_ops.model.plans.guard_rules import judge_alteration
from quota_ops.model.plans.plan import Plan
from quota_ops.model.quotas.difference import Action, Kind
from quota_ops.model.quotas.entity import Entity
from quota_ops.model.quotas.quota import QUOTA_KEYS
from quota_ops.model.quotas.rows import OverrideRow
from quota_ops.model.quotas.specification import format_flags
from quota_ops.model.runs.report import Report, once_per_report
from quota_ops.model.text import counted, plural
from quota_ops.report.outline.row_status import ReportRow, RowStatus, find_respelled, report_rows
from quota_ops.report.outline.sentences import is_accepted

_EITHER = "To keep it, accept it into Git, or list its entity under protect in cluster.yaml"
"""The ways out that change files."""
_BY_HAND = "clear the quota of its address first, then this one, and set that of the address again"
MOST_ENTITIES = 3
"""For how many entities with overriding quotas the commands are printed."""


class Ways(NamedTuple):
    """Commands for the drift of a cluster, which continue with options of a row."""

    accept: str
    accept_end: str
    hold: str
    hold_end: str


def list_ways(report: Report) -> Ways:
    """Return the commands of a cluster."""
    cluster = quote(report.cluster)
    return Ways(
        accept=f"quota-ops accept {cluster} ",
        accept_end=f" --run {quote(report.run)}",
        hold=f"quota-ops hold {cluster} ",
        hold_end=" --until 2h --reason TEXT",
    )


def _has_ways(row: ReportRow) -> bool:
    is_outside_git = row.status in {RowStatus.DRIFTED, RowStatus.OVERRIDING}
    return is_outside_git and row.difference.action is not Action.FORGET


def format_names(row: ReportRow) -> str:
    """Return the options that name the entity of a row; empty for a row without ways out."""
    return format_flags(Entity.parse(row.difference.entity)) if _has_ways(row) else ""


def format_accept_options(row: ReportRow, report: Report) -> str:
    """Return the option that names the key, if any; also empty if Git cannot declare the value."""
    if not _has_ways(row) or find_respelled(row.overrides) or not _can_be_declared(row, report):
        return ""
    is_kept = row.difference.after is not None or row.status is RowStatus.OVERRIDING
    return f" --key {quote(row.difference.key)}" if is_kept else ""


def _can_be_declared(row: ReportRow, report: Report) -> bool:
    """Return whether Git can declare what the cluster stores: not NaN, nor outside the scope."""
    key, value = QUOTA_KEYS.get(row.difference.key), row.difference.before
    if row.overrides and report.plan:
        entity = Entity.parse(row.difference.entity)
        if not any(allowed.accepts(entity) for allowed in report.plan.policy.scope):
            return False
    return key is None or value is None or spell_limit(key, value) is not None


def format_revert(row: ReportRow, report: Report) -> str:
    """Return the command that reverts a drifted row, overriding guards; empty if none does.

    A run does not revert what it only reports, but an alter can. On a page of a DAG run a person
    triggers the DAG instead: Airflow adds a link to it.
    """
    plan, difference = report.plan, row.difference
    if plan is None or not _has_ways(row) or plan.standstill or difference.hands_off:
        return ""
    cluster = quote(report.cluster)
    if row.status is RowStatus.OVERRIDING:
        return _format_end(report, [row])
    if difference.action is not Action.REPORT:
        is_blocked = bool(plan.guards) and not (plan.repairs and difference.restores)
        override = f" {format_override(*_name(plan.guards))}" if is_blocked else ""
        if report.dag_id or _find_obstacle(report):
            return ""
        return f"quota-ops reconcile {cluster}{override}"
    if difference.after is None:
        return _format_removal(report, format_names(row), (difference.key,))
    limit = spell_limit(QUOTA_KEYS[difference.key], difference.after)
    change = f"--add {quote(f'{difference.key}={limit}')}"
    guards = judge_alteration(
        (difference._replace(action=Action.SET),), plan.policy, plan.applied_policy, {}
    )
    override = format_override(*_name(guards)).strip()
    return f"quota-ops alter {cluster} {format_names(row)} {change} {override}"


def _format_removal(report: Report, names: str, keys: Iterable[str]) -> str:
    change = f"--delete {quote(','.join(keys))} --reason TEXT"
    return f"quota-ops alter {quote(report.cluster)} {names} {change}"


def _format_end(report: Report, rows: Sequence[ReportRow]) -> str:
    """Return the command that removes the overriding rows of an entity.

    For another spelling of a declared address, it clears and sets the declared one too, which
    brokers would not apply otherwise: a value that is stored already is not written again. Only
    what the cluster stores is cleared and set, and it is set even if an earlier step fails. Empty
    for a host name that may be one of many addresses.
    """
    removal = _format_removal(report, format_names(rows[0]), (row.difference.key for row in rows))
    if not find_respelled(rows[0].overrides):
        return removal
    changed = {row.id: row.before for row in report.plan.differences} if report.plan else {}
    stored = {of: changed.get(of.declared_id, of.declared) for of in rows[0].overrides}
    clears, sets = [], []
    for declared, value in stored.items():
        if value is not None:
            clear, set_again = _format_rewrite(report, declared, value)
            clears.append(clear)
            sets.append(set_again)
    if len(clears) > MOST_ENTITIES:
        return ""
    return "; ".join((" && ".join((*clears, f"{removal} --allow {Guard.UNLIMITED}")), *sets))


def _format_rewrite(report: Report, row: OverrideRow, value: float) -> tuple[str, str]:
    """Return the commands that clear a declared quota and set it again."""
    names = format_flags(Entity.parse(row.declared_entity))
    removal = f"{_format_removal(report, names, (row.key,))} --allow {Guard.UNLIMITED}"
    limit = quote(f"{row.key}={value:.17g}")
    return removal, f"quota-ops alter {quote(report.cluster)} {names} --add {limit} --reason TEXT"


def list_overriding_ways(report: Report) -> Iterator[str]:
    """Yield what a person can do about the overriding quotas, with the commands for each entity."""
    by_entity: dict[str, list[ReportRow]] = {}
    for row in report_rows(report):
        if row.status is RowStatus.OVERRIDING:
            by_entity.setdefault(format_names(row), []).append(row)
    if not by_entity:
        return
    ways = list_ways(report)
    is_kept = any(not find_respelled(rows[0].overrides) for rows in by_entity.values())
    yield "No run changes an overriding quota." + (f" {_EITHER}." if is_kept else "")
    for names, rows in islice(by_entity.items(), MOST_ENTITIES):
        keys = [row.difference.key for row in rows if _can_be_declared(row, report)]
        only = "".join(f" --key {quote(key)}" for key in keys)
        yield f"To remove it:         {_format_end(report, rows) or _BY_HAND}"
        if keys and not find_respelled(rows[0].overrides):
            yield f"To keep it:           {ways.accept}{names}{only}{ways.accept_end}"
        yield f"To decide it later:   {ways.hold}{names}{ways.hold_end}"
    if (more := len(by_entity) - MOST_ENTITIES) > 0:
        yield f"… and the same for {counted(more, 'other entity')}."


def explain_revert(row: ReportRow, report: Report) -> str:
    """Return which run reverts a drifted row, and when at the earliest, or what prevents it."""
    plan = report.plan
    if plan is None or not _has_ways(row):
        return ""
    if left_alone := _explain_left_alone(row, plan):
        return left_alone
    is_repair = bool(plan.repairs) and row.difference.restores
    if reason := _find_obstacle(report) if is_repair else _find_wait(report):
        return f"{reason}."
    clears = row.difference.kind is not Kind.DRIFTED and row.difference.after is None
    did = "clears" if clears else "reverts"
    also = ", with all other changes" if len(plan.writes) > 1 and not is_repair else ""
    return f"The next reconcile {did} it{also}{_say_when(plan.policy.schedule, report.finished)}."


def _explain_left_alone(row: ReportRow, plan: Plan) -> str:
    """Return why no run reverts a row; empty if one does."""
    if row.status is RowStatus.OVERRIDING:
        keep = "" if find_respelled(row.overrides) else f" {_EITHER}. Otherwise:"
        return f"No run changes it.{keep}"
    if plan.standstill:
        return f"No run writes now: the cluster is {plan.standstill}."
    if row.difference.hands_off:
        return "No run reverts it: cluster.yaml protects it."
    if row.difference.action is Action.REPORT:
        return "No run reverts it: cluster.yaml sets drift: report."
    return ""


@once_per_report
def _find_wait(report: Report) -> str:
    """Return what the next run waits for before it reverts anything; empty if for nothing."""
    return _find_obstacle(report) or ("" if report.plan is None else _list_decisions(report.plan))


@once_per_report  # it reads all outcomes, and a page has a row for each of them
def _find_obstacle(report: Report) -> str:
    """Return why no run can apply the plan, even if it is approved; empty if one can."""
    if failure := report.provenance.failure:
        return f"No run changes anything until this is fixed: {failure}"
    if not is_accepted(report):
        return "No run changes anything while the broker rejects a change of the plan"
    return ""


def _list_decisions(plan: Plan) -> str:
    """Return whose decision the next run waits for; empty if it needs none.

    A guard that was overridden blocks again: an override is valid for its own run.
    """
    if number := len(_name(plan.guards)):
        blocks, them = plural(number, "blocks", "block"), plural(number, "it", "them")
        what, changes = "the whole plan", "nothing"
        if plan.repairs:
            what, changes = "all other changes", "none of them"
        approves = ", or approves the plan in Airflow or CI" if plan.can_be_approved else ""
        return (
            f"{counted(number, 'guard')} {blocks} {what}: the next run changes {changes} "
            f"until somebody overrides {them}{approves}"
        )
    if needs_approval(plan):
        return f"{approval_source(plan)}: the next run changes nothing until its plan is approved"
    return ""


def _name(guards: Iterable[GuardFinding]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(guard.guard for guard in guards))


@lru_cache(maxsize=8)
def _say_when(schedule: str | None, now: str) -> str:
    """Return when a schedule next starts a run after a report, or that none does."""
    if schedule is None:
        return ", when somebody or a job starts it: cluster.yaml sets no schedule"
    try:
        start = next_start(schedule, datetime.fromisoformat(now))
    except ValueError:  # no date that it names is near
        return f", by its schedule ({schedule})"
    return f": not before {start:%Y-%m-%d %H:%M} UTC, by its schedule ({schedule})"
