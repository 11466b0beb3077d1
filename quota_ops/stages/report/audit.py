"""The audit record of a run: who approved which plan, what was written and verified."""

import json
from collections.abc import Iterable, Iterator
from typing import Any

from quota_ops.model.quotas.difference import WRITES
from quota_ops.model.quotas.quota import same
from quota_ops.model.runs.end import Answer, Change, End, EndedPlan, EndedRollback, EndMessage
from quota_ops.model.runs.outcome import DONE
from quota_ops.model.runs.report import Report, Verb
from quota_ops.model.runs.stages import StageStatus
from quota_ops.model.runs.verification import Verdict
from quota_ops.model.stored import json_schema, to_json
from quota_ops.report.outline.row_status import ReportRow, RowStatus, report_rows
from quota_ops.report.outline.summary import summarize

Json = dict[str, Any]

PART_BYTES = 500_000
"""Bytes of changes in one message: half of what a broker accepts (message.max.bytes)."""


def audit_record(report: Report, end: int) -> End:
    """Return the record of an end of a run, with its number; `messages` adds the changes."""
    summary, plan, rollback = summarize(report), report.plan, report.rollback
    record, stages = report.record, report.stages
    if record:
        stages = tuple(stage for stage in stages if stage.status is not StageStatus.NOT_RUN)
    return End(
        schema=1,
        verb=record and record.verb,
        by=(record or report).by,
        login=(record or report).login,
        reason=(record and record.why) or None,
        cluster=report.cluster,
        cluster_id=report.cluster_id,
        run=report.run,
        end=end,
        commit=report.commit,
        commit_source=report.provenance.source,
        uncommitted=report.provenance.uncommitted,
        started=report.started,
        finished=report.finished,
        answer=Answer(summary.status, summary.sentence),
        stages=stages,
        plan=EndedPlan(plan.digest, plan.guards) if plan else None,
        decisions=report.decisions,
        rollback=EndedRollback(rollback.run, rollback.by, rollback.login, rollback.reason)
        if rollback
        else None,
        brokers=report.verification.brokers,
        changed=count_changed(report),
    )


def list_changes(report: Report) -> Iterator[Json]:
    """Yield the changes of a run as `audit_schema` defines them.

    Numbers are in the key's own unit; NaN, inf and -inf are written as strings. A change has no
    null fields, except values, outcome and verdict.
    """
    return (to_json(Change, _make_change(row, report)) for row in list_written(report))


def count_changed(report: Report) -> int:
    """Return how many rows got another value from a run, whether or not it was read back."""
    return sum(
        row.applied is not None
        and row.applied.was_written
        and not same(row.difference.before, row.difference.after)
        for row in list_written(report)
    )


def list_written(report: Report) -> Iterator[ReportRow]:
    """Yield the rows that a plan writes, or those of a command, with what became of them."""
    if report.record is None:
        yield from (row for row in report_rows(report) if row.difference.action in WRITES)
        return
    outcomes = {outcome.entity: outcome for outcome in report.applied}
    wrong = {row.id: row for row in report.verification.verdicts}
    for change in report.record.changes:
        found = outcomes.get(change.entity), wrong.get(change.id)
        yield ReportRow(change, RowStatus.UNMANAGED, None, *found)


KINDS = {Verb.ALTER: "altered", Verb.ADOPT: "adopted", Verb.RELEASE: "released"}


def _make_change(row: ReportRow, report: Report) -> Change:
    difference, applied = row.difference, row.applied
    verdict = row.verdict.verdict if row.verdict else None
    if verdict is None and report.verification.brokers and applied and applied.status in DONE:
        verdict = Verdict.VERIFIED
    return Change(
        entity=difference.entity,
        key=difference.key,
        kind=KINDS[report.record.verb] if report.record else difference.kind,
        before=difference.before,
        after=difference.after,
        outcome=applied and applied.status,
        verdict=verdict,
        owner=difference.owner,
        reason=difference.reason,
        source=difference.source,
        error=applied and applied.error,
        message=applied and applied.message,
        seen=row.verdict.seen if row.verdict else (),
    )


def messages(record: End, changes: Iterable[Json]) -> tuple[bytes, ...]:
    """Return the record as Kafka messages by `audit_schema`, each with some of the changes."""
    values, parts = to_json(End, record), list(_parts(changes))
    return tuple(
        json.dumps(
            values | {"part": at, "parts": len(parts), "changes": part}, allow_nan=False
        ).encode()
        for at, part in enumerate(parts, start=1)
    )


def _parts(changes: Iterable[Json]) -> Iterator[list[Json]]:
    part: list[Json] = []
    size = 0
    for change in changes:
        length = len(json.dumps(change))
        if part and size + length > PART_BYTES:
            yield part
            part, size = [], 0
        part.append(change)
        size += length
    yield part


def audit_schema() -> Json:
    """Return the JSON Schema of a message; fields may be added to it."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "The end of a run, or a part of it",
        **json_schema(EndMessage),
    }
