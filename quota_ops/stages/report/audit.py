"""The audit record of a run: who approved which plan, what was written and verified."""

import json
from collections.abc import Iterable, Iterator
from typing import Any, get_type_hints

from msgspec.structs import asdict

from quota_ops.model.commit import CommitSource
from quota_ops.model.plans.approval import Decision
from quota_ops.model.plans.guard import GuardFinding
from quota_ops.model.quotas.difference import WRITES
from quota_ops.model.quotas.quota import json_number, same
from quota_ops.model.runs.outcome import DONE, Status
from quota_ops.model.runs.report import Report, Verb
from quota_ops.model.runs.stages import STAGES, StageResult, StageStatus
from quota_ops.model.runs.verification import BrokerResult, Verdict
from quota_ops.report.outline.row_status import ReportRow, RowStatus, report_rows
from quota_ops.report.outline.summary import summarize
from quota_ops.store.places.json_text import without_nulls

Json = dict[str, Any]

SCHEMA = 1
"""Raised when a field is removed or changes its meaning; new fields do not raise it."""

PART_BYTES = 500_000
"""Bytes of changes in one message: half of what a broker accepts (message.max.bytes)."""


def audit_record(report: Report, end: int) -> Json:
    """Return the record of an end of a run, with its number; `messages` adds the changes."""
    summary, plan, rollback = summarize(report), report.plan, report.rollback
    record, stages = report.record, report.stages
    if record:
        stages = tuple(stage for stage in stages if stage.status is not StageStatus.NOT_RUN)
    return {
        "schema": SCHEMA,
        "verb": record and record.verb,
        "by": (record or report).by,
        "login": (record or report).login,
        "reason": (record and record.why) or None,
        "cluster": report.cluster,
        "cluster_id": report.cluster_id,
        "run": report.run,
        "end": end,
        "commit": report.commit,
        "commit_source": report.provenance.source,
        "uncommitted": list(report.provenance.uncommitted),
        "started": report.started,
        "finished": report.finished,
        "answer": {"status": summary.status, "sentence": summary.sentence},
        "stages": [stage._asdict() for stage in stages],
        "plan": plan
        and {"digest": plan.digest, "guards": [asdict(guard) for guard in plan.guards]},
        "decisions": [decision.as_json() for decision in report.decisions],
        "rollback": rollback
        and {name: getattr(rollback, name) for name in ("run", "by", "login", "reason")},
        "brokers": [asdict(broker) for broker in report.brokers],
        "changed": count_changed(report),
    }


def list_changes(report: Report) -> Iterator[Json]:
    """Yield the changes of a run as `audit_schema` defines them.

    Numbers are in the key's own unit; NaN, inf and -inf are written as strings. A change has no
    null fields, except values, outcome and verdict.
    """
    return (_change(row, report) for row in list_written(report))


def count_changed(report: Report) -> int:
    """Return how many rows a run has changed on its cluster."""
    if report.record is None:
        return sum(row.was_written for row in report_rows(report))
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
    wrong = {row.id: row for row in report.verdicts}
    for change in report.record.changes:
        found = outcomes.get(change.entity), wrong.get(change.id)
        yield ReportRow(change, RowStatus.UNMANAGED, None, *found)


KINDS = {Verb.ALTER: "altered", Verb.ADOPT: "adopted", Verb.RELEASE: "released"}


def _change(row: ReportRow, report: Report) -> Json:
    difference, applied = row.difference, row.applied
    verdict = row.verdict.verdict if row.verdict else None
    if verdict is None and report.brokers and applied and applied.status in DONE:
        verdict = Verdict.VERIFIED
    seen = row.verdict.seen if row.verdict else ()
    return {
        "entity": difference.entity,
        "key": difference.key,
        "kind": KINDS[report.record.verb] if report.record else difference.kind,
        "before": json_number(difference.before),
        "after": json_number(difference.after),
        "outcome": applied and applied.status,
        "verdict": verdict,
    } | without_nulls(
        {
            "owner": difference.owner,
            "reason": difference.reason,
            "source": difference.source,
            "error": applied and applied.error,
            "message": applied and applied.message,
            "seen": [[broker, json_number(value)] for broker, value in seen] or None,
        }
    )


def messages(record: Json, changes: Iterable[Json]) -> tuple[bytes, ...]:
    """Return the record as Kafka messages by `audit_schema`, each with some of the changes."""
    parts = list(_parts(changes))
    return tuple(
        json.dumps(
            record | {"part": at, "parts": len(parts), "changes": part}, allow_nan=False
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


_TEXT: Json = {"type": "string"}
_MAYBE: Json = {"type": ["string", "null"]}
_COUNT: Json = {"type": "integer"}
_NUMBER: Json = {"anyOf": [{"type": ["number", "null"]}, {"enum": ["nan", "inf", "-inf"]}]}


def _object(**properties: Json) -> Json:
    return {"type": "object", "properties": properties, "required": list(properties)}


_TYPES = {
    str: _TEXT,
    int: _COUNT,
    bool: {"type": "boolean"},
    str | None: _MAYBE,
    int | None: {"type": ["integer", "null"]},
    float | None: {"type": ["number", "null"]},
}


def _fields(kind: Any, **others: Json) -> Json:
    """Return the schema of a value, all of whose fields a record has; `others` are set apart."""
    hints = get_type_hints(kind).items()
    known = {name: _TYPES[hint] for name, hint in hints if name not in others}
    return _object(**known, **others)


def _list(items: Json) -> Json:
    return {"type": "array", "items": items}


def _values(*names: str | None) -> Json:
    return {"enum": [None if name is None else str(name) for name in names]}


def audit_schema() -> Json:
    """Return the JSON Schema of an audit record; fields may be added to it."""
    guard = _fields(GuardFinding)
    change = _object(
        entity=_TEXT,
        key=_TEXT,
        kind=_TEXT,
        before=_NUMBER,
        after=_NUMBER,
        outcome=_values(*Status, None),
        verdict=_values(*Verdict, None),
    )
    change["properties"] |= {
        "owner": _TEXT,
        "reason": _TEXT,
        "source": _TEXT,
        "error": _TEXT,
        "message": _TEXT,
        "seen": _list({"type": "array", "prefixItems": [_COUNT, _NUMBER]}),
    }
    stages = _values(*STAGES, Verb.ADOPT, Verb.RELEASE)
    stage = _fields(StageResult, stage=stages, status=_values(*StageStatus))
    decision = _fields(Decision, said=_TEXT, shown=_list(guard), guards=_list(_TEXT))
    rollback = _object(run=_TEXT, by=_TEXT, login=_MAYBE, reason=_TEXT)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "The end of a run, or a part of it",
        **_object(
            schema={"const": SCHEMA},
            verb=_values(*Verb, None),
            by=_MAYBE,
            login=_MAYBE,
            reason=_MAYBE,
            cluster=_TEXT,
            cluster_id=_MAYBE,
            run=_TEXT,
            end=_COUNT,
            part=_COUNT,
            parts=_COUNT,
            commit=_MAYBE,
            commit_source=_values(*CommitSource, None),
            uncommitted=_list(_TEXT),
            started=_TEXT,
            finished=_TEXT,
            answer=_object(status=_TEXT, sentence=_TEXT),
            stages=_list(stage),
            plan={"anyOf": [{"type": "null"}, _object(digest=_TEXT, guards=_list(guard))]},
            decisions=_list(decision),
            rollback={"anyOf": [{"type": "null"}, rollback]},
            brokers=_list(_fields(BrokerResult)),
            changed=_COUNT,
            changes=_list(change),
        ),
    }
