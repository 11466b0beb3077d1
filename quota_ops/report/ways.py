"""The ways out of drift: what reverts it, and the commands that accept or hold it."""

from datetime import datetime
from functools import lru_cache
from shlex import quote
from typing import NamedTuple

from quota_ops.desired.cron import next_start
from quota_ops.model.difference import Action, Kind
from quota_ops.model.entity import Entity
from quota_ops.model.policy import DriftPolicy
from quota_ops.model.report import Report
from quota_ops.model.specification import format_flags
from quota_ops.report.row_status import ReportRow, RowStatus


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


def format_names(row: ReportRow) -> str:
    """Return the options that name a drifted entity; empty for a row without ways out."""
    if row.status is not RowStatus.DRIFTED or row.difference.action is Action.FORGET:
        return ""
    return format_flags(Entity.parse(row.difference.entity))


def format_accept_key(row: ReportRow) -> str:
    """Return the option that names the key; empty if Git does not declare it."""
    return "" if row.difference.after is None else f" --key {quote(row.difference.key)}"


def format_revert(row: ReportRow, report: Report) -> str:
    """Return the command that reverts a drifted row; empty if none does.

    A run does not revert what it only reports, but an alter can.
    """
    plan, difference, names = report.plan, row.difference, format_names(row)
    if plan is None or not names or plan.standstill or difference.hands_off:
        return ""
    cluster = quote(report.cluster)
    if difference.action is not Action.REPORT:
        return f"quota-ops reconcile {cluster}"
    if difference.after is None:
        change = f"--delete {quote(difference.key)}"
    else:
        change = f"--add {quote(f'{difference.key}={difference.after:.17g}')}"
    return f"quota-ops alter {cluster} {names} {change} --reason TEXT"


def explain_revert(row: ReportRow, report: Report) -> str:
    """Return which run reverts a drifted row, and when at the earliest, or what prevents it."""
    plan = report.plan
    if plan is None or not format_names(row):
        return ""
    if plan.standstill:
        return f"No run writes now: the cluster is {plan.standstill}."
    if row.difference.hands_off:
        return "No run reverts it: cluster.yaml protects it."
    if row.difference.action is Action.REPORT:
        return "No run reverts it: cluster.yaml sets drift: report."
    if row.guarded or plan.policy.drift is DriftPolicy.ASK:
        return "A guard blocks the run that reverts it, until somebody approves or overrides it."
    clears = row.difference.kind is not Kind.DRIFTED and row.difference.after is None
    did = "clears" if clears else "reverts"
    also = ", with all other changes" if len(plan.writes) > 1 else ""
    return f"The next reconcile {did} it{also}{_say_when(plan.policy.schedule, report.finished)}."


@lru_cache(maxsize=8)
def _say_when(schedule: str | None, now: str) -> str:
    """Return when a schedule next starts a run after a report; empty without a schedule."""
    if schedule is None:
        return ""
    try:
        start = next_start(schedule, datetime.fromisoformat(now))
    except ValueError:  # no date that it names is near
        return f", by its schedule ({schedule})"
    return f": not before {start:%Y-%m-%d %H:%M} UTC, by its schedule ({schedule})"
