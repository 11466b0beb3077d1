"""The rows of a run in the history: one for its end, and one for each quota."""

import logging
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

import pyarrow as pa

from quota_ops.model.history.history import HISTORY, Mode
from quota_ops.model.plans.approval import Decision, DecisionKind
from quota_ops.model.plans.effect import NO_RISK, Risk
from quota_ops.model.plans.guard import Guard, GuardFinding
from quota_ops.model.quotas.difference import WRITES, Action, Difference, Kind
from quota_ops.model.quotas.quota import same
from quota_ops.model.quotas.tables import LEDGER
from quota_ops.model.runs.outcome import DONE, Status
from quota_ops.model.runs.report import Record, Report, Verb
from quota_ops.model.runs.stages import STOPPED, StageStatus
from quota_ops.model.runs.verification import RowVerdict, Settlement
from quota_ops.report.outline.policy_changes import compare_policies
from quota_ops.report.outline.row_status import ReportRow, RowStatus, report_rows
from quota_ops.report.outline.summary import summarize
from quota_ops.report.records.json_report import COUNTED, count_rows
from quota_ops.stages.plan.earlier_runs import count_managed_rows
from quota_ops.stages.report.audit import KINDS, count_changed, list_written
from quota_ops.stages.report.run_report import read_end_time
from quota_ops.store.history import history
from quota_ops.store.places import parquet
from quota_ops.store.run.folder import RunFolder

_log = logging.getLogger(__name__)

_LEFT_OUT = frozenset({RowStatus.IN_SYNC, RowStatus.OVERRIDDEN, RowStatus.UNMANAGED})
"""The statuses of rows that are only counted."""
_REQUESTED = frozenset({*DONE, Status.REFUSED, Status.UNKNOWN})
"""The outcomes of writes that a broker was asked for, at least with validate-only."""
_UNKNOWN_RISK = (None,) * len(NO_RISK)
"""The risk of a row that is not written."""
_SAME = ("entity", "key", "action", "owner", "reason", "cut", "rise", "unlimited", "foreign")
"""The columns with the values of a difference or its risk."""
Columns = dict[str, Sequence[Any]]


class RunEnd(NamedTuple):
    """What the artifacts of a run have besides its report."""

    ended: str
    owned: Mapping[str | None, int]
    """How many managed rows the ledger had, by owner."""
    settlement: Settlement | None = None
    """What a later run found of the writes that got no response."""


def list_report_rows(report: Report, end: RunEnd) -> pa.Table:
    """Return the rows of a run, as HISTORY; the revision is 1."""
    run = {
        "cluster": report.cluster,
        "cluster_id": report.cluster_id,
        "run": report.run,
        "sequence": report.sequence,
        "started": report.started,
        "ended": end.ended,
        "revision": 1,
        "commit": report.commit,
        "commit_author": report.provenance.author,
        "approver": list_approvers(report.decisions),
    }
    if report.record is not None:
        return _list_command_rows(report, report.record, run, end)
    return _list_run_rows(report, run, end)


def _list_run_rows(report: Report, run: dict[str, Any], end: RunEnd) -> pa.Table:
    """Return the rows of a run that compared; `run` is what all of them have."""
    rollback = report.rollback
    applied = bool(report.applied) or any(
        stage.stage == "apply" and stage.status is not StageStatus.NOT_RUN
        for stage in report.stages
    )
    mode = Mode.ROLLBACK if rollback else Mode.APPLY if applied else Mode.LOOK
    run |= {
        "mode": mode,
        "status": summarize(report).status,
        "author": rollback.by if rollback else report.by or report.login,
        "run_reason": _find_reason(report),
    }
    counts = _count_states(report) if report.plan else {}
    guards = report.plan.guards if report.plan else ()
    clients = report.clients.total if report.clients and not report.clients.trouble else None
    whole = {
        "owned": sum(end.owned.values()) if report.plan else None,
        "clients": clients and clients.clients,
        "losing": clients and clients.losing,
        "policy": _describe_policy(report) if mode is Mode.APPLY else None,
    }
    whole |= counts | _describe_stop(report) | _name_guards(guards)
    rows = report_rows(report)
    listed = [row for row in rows if row.status not in _LEFT_OUT]
    parts = [_describe_rows(listed, report, end)]
    if mode is Mode.APPLY and report.verification.brokers:
        recorded = [(row, change) for row in rows if (change := _record(row.difference))]
        columns = _describe_rows([row for row, _ in recorded], report, end)
        parts.append(columns | _list_columns([change for _, change in recorded]))
    return _make_table(run, whole, *parts)


def _find_reason(report: Report) -> str | None:
    """Return the reason of a rollback or of the last decision, which is not about each row."""
    reasons = [made.reason for made in (report.rollback, *report.decisions[-1:]) if made]
    return next(filter(None, reasons), None)


def _make_table(run: Mapping[str, Any], whole: Mapping[str, Any], *parts: Columns) -> pa.Table:
    """Return the row of a run, then those of its quotas; `run` is what all of them have."""
    tables = []
    for part in filter(None, (_list_columns([whole]), *parts)):
        number = len(next(iter(part.values())))
        columns = (part.get(name, [run.get(name)] * number) for name in HISTORY.names)
        tables.append(parquet.from_columns(HISTORY, columns))
    return pa.concat_tables(tables)


def _list_columns(rows: Sequence[Mapping[str, Any]]) -> Columns:
    """Return rows with the same columns as columns; empty if there are none."""
    return {name: [row[name] for row in rows] for name in rows[0]} if rows else {}


def _record(row: Difference) -> dict[str, Any]:
    """Return how the ledger changed, because the cluster stored already what Git declares."""
    if row.action not in {Action.RECORD, Action.FORGET} or same(row.verified, row.before):
        return {}
    if row.run is None:  # no run wrote or verified it
        return {"mode": Mode.ADOPT, "kind": KINDS[Verb.ADOPT], "actual": row.before}
    return {"mode": Mode.FOUND, "kind": Mode.FOUND, "actual": row.verified}


def _describe_policy(report: Report) -> str | None:
    """Return the fields of cluster.yaml whose change was approved; None if none was."""
    plan = report.plan
    if plan is None or not any(
        guard.guard == Guard.POLICY_CHANGED and guard.allowed is not None for guard in plan.guards
    ):
        return None
    changes = compare_policies(plan.applied_policy, plan.policy)
    return "; ".join(change.format() for change in changes) or None


def _list_row_approvers(row: ReportRow, report: Report) -> str | None:
    """Return who approved the plan, or overrode a guard that blocks it because of this row.

    A repair of drift needs neither.
    """
    plan = report.plan
    if not report.decisions or (plan and row.difference.id in plan.undecided):
        return None
    found_by = {*row.guards, *row.overridden}
    return list_approvers(
        decision
        for decision in report.decisions
        if decision.said is DecisionKind.APPROVED
        or plan is None
        or any(not guard.rows or guard.guard in found_by for guard in decision.shown)
    )


def list_approvers(decisions: Iterable[Decision]) -> str | None:
    """Return who approved a plan or overrode its guards, in order; None if nobody did."""
    kinds = {DecisionKind.APPROVED, DecisionKind.OVERRIDDEN}
    names = (made.author for made in decisions if made.said in kinds)
    return ", ".join(dict.fromkeys(names)) or None


def _count_states(report: Report) -> dict[str, int | None]:
    counts, rows = count_rows(report), report_rows(report)
    return {name: counts[name] for name in COUNTED} | {
        "declared": report.plan.desired if report.plan else None,
        "refused": sum(_find_outcome(row) is Status.REFUSED for row in rows),
        "changed": sum(row.was_written for row in rows),
    }


def _describe_stop(report: Report) -> dict[str, str | None]:
    for stage in report.stages:
        if stage.status in STOPPED:
            return {"stopped_at": stage.stage, "stopped": stage.status, "failure": stage.message}
    if report.invalid:
        failure = "\n".join(file.text for file in report.invalid)
        return {"stopped_at": "check", "stopped": StageStatus.FAILED, "failure": failure}
    return {}


def _find_kind(row: Difference) -> Kind:
    """Return the kind of a row; one that was not judged is drift if it changed since it was read.

    So the history does not end its drift, whatever its file is to declare.
    """
    moved = row.verified is not None and not same(row.before, row.verified)
    return Kind.DRIFTED if row.kind is Kind.NOT_JUDGED and moved else row.kind


def _name_guards(guards: tuple[GuardFinding, ...]) -> dict[str, str | None]:
    blocked = [guard.guard for guard in guards if guard.allowed is None]
    overridden = [guard.guard for guard in guards if guard.allowed is not None]
    return {"blocked_by": ",".join(blocked) or None, "overridden": ",".join(overridden) or None}


def _describe_rows(rows: Sequence[ReportRow], report: Report, end: RunEnd) -> Columns:
    """Return the columns of quotas; empty if there are none."""
    if not rows:
        return {}
    differences, outcomes = [row.difference for row in rows], [*map(_find_outcome, rows)]
    columns = dict(zip(Difference._fields, zip(*differences, strict=True), strict=True))
    stored = (
        _find_stored(*pair, report, end.settlement) for pair in zip(rows, outcomes, strict=True)
    )
    found, found_by = zip(*stored, strict=True)
    commits = [
        row.find_commit(report.commit) if row.after is not None or row.file is not None else None
        for row in differences
    ]
    author = report.provenance.author
    approvers = [_list_row_approvers(row, report) for row in rows]
    reason = _find_reason(report)
    risks = [
        (row.risk or NO_RISK) if row.difference.action in WRITES else _UNKNOWN_RISK for row in rows
    ]
    columns = dict(zip(Risk._fields, zip(*risks, strict=True), strict=True)) | columns
    return {name: columns[name] for name in _SAME} | {
        "run_reason": [reason if by or report.rollback else None for by in approvers],
        "kind": [*map(_find_kind, differences)],
        "commit": commits,
        "commit_author": [author if commit == report.commit else None for commit in commits],
        "approver": approvers,
        "state": [row.status.name.lower() for row in rows],
        "outcome": outcomes,
        "desired": [
            row.overrides[0].declared if row.overrides else row.difference.after for row in rows
        ],
        "actual": columns["before"],
        "requested": [
            row.target if outcome in _REQUESTED else None
            for row, outcome in zip(differences, outcomes, strict=True)
        ],
        "found": found,
        "found_by": found_by,
        "owned": [end.owned.get(owner, 0) for owner in columns["owner"]],
    }


def _find_stored(
    row: ReportRow, outcome: Status | None, report: Report, settlement: Settlement | None
) -> tuple[float | None, str | None]:
    """Return what the cluster stored at the last look after a write, and the run that looked.

    (None, None) if none did, or if brokers differ: that a broker accepted a write is no look.
    """
    if settlement and row.difference.id in settlement.found:
        return settlement.found[row.difference.id], settlement.by
    if row.verdict or (outcome in DONE and outcome is not Status.ALREADY):
        return _read_verdict(row.verdict, row.difference.target, report)
    if outcome is Status.ALREADY:
        return row.difference.target, report.run
    if outcome in {Status.UNKNOWN, Status.STALE}:
        return None, None
    return row.difference.before, report.run


def _read_verdict(
    verdict: RowVerdict | None, target: float | None, report: Report
) -> tuple[float | None, str | None]:
    """Return the value that all brokers stored when a run read it back, and the run, or Nones."""
    if verdict is None:
        return (target, report.run) if report.verification.brokers else (None, None)
    replies = [value for _, value in verdict.seen]
    is_one = len(replies) == sum(broker.error is None for broker in report.verification.brokers)
    if replies and is_one and all(same(value, replies[0]) for value in replies):
        return replies[0], report.run
    return None, None


def _find_outcome(row: ReportRow) -> Status | None:
    is_refused = row.validated is not None and row.validated.status is Status.REFUSED
    return row.applied.status if row.applied else Status.REFUSED if is_refused else None


def _list_command_rows(
    report: Report, record: Record, run: dict[str, Any], end: RunEnd
) -> pa.Table:
    """Return the rows of a command; `run` is what all of them have."""
    run |= {
        "mode": Mode(record.verb),
        "status": "",
        "author": record.by,
        "run_reason": record.why or None,
    }
    if record.verb is Verb.ALTER:  # its values are not from Git
        run |= {"commit": None, "commit_author": None}
    whole = _describe_stop(report) | {"changed": count_changed(report)}
    columns = _describe_rows([*list_written(report)], report, end)
    # A release reads no cluster.
    names = _OF_COMMANDS if record.verb is not Verb.RELEASE else _OF_COMMANDS[:-2]
    changes = {name: columns[name] for name in names if columns}
    kinds = [KINDS[record.verb]] * len(record.changes)
    return _make_table(run, whole, changes and changes | {"kind": kinds})


_OF_COMMANDS = ("entity", "key", "outcome", "actual", "requested", "owner", "found", "found_by")
"""The columns that the rows of commands have."""


def record_run_history(folder: RunFolder, report: Report) -> str | None:
    """Append a run that compared, or tried to; return why the history lacks it, or None.

    The first run of a day then compacts the days before.
    """
    if folder.only_read:
        return None
    try:
        owned = count_managed_rows(folder) if folder.has(LEDGER.file) else {}
        end = RunEnd(read_end_time(folder), owned, folder.settlement())
        history.append(folder.store, list_report_rows(report, end))
    except Exception as error:  # noqa: BLE001 - a run has ended as it did without its history
        words = f"this run is not in the history: {' '.join(str(error).split())}"
        _log.warning("%s", words)
        return words
    try:
        for trouble in history.compact_daily(folder.store, datetime.now(UTC)):
            _log.warning("not in the history: %s", trouble)
    except Exception as error:  # noqa: BLE001 - the history is complete, only slower to read
        _log.warning("the history is not compacted: %s", " ".join(str(error).split()))
    return None
