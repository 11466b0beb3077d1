"""The audit record of an `alter`, `adopt` or `release`, which are runs without a plan."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from quota_ops.model.plans.approval import Decision
from quota_ops.model.quotas.quota import json_number
from quota_ops.model.quotas.rows import Key
from quota_ops.model.runs.outcome import Outcome
from quota_ops.model.runs.report import StageResult
from quota_ops.model.runs.run import About, Alter, LedgerEdit, Verification
from quota_ops.model.runs.verification import Verdict
from quota_ops.stages.report.audit import SCHEMA, Json
from quota_ops.store.places.json_text import without_nulls


class Verb(StrEnum):
    """A command that changes something without a plan."""

    ALTER = "alter"
    ADOPT = "adopt"
    RELEASE = "release"


_KINDS = {Verb.ALTER: "altered", Verb.ADOPT: "adopted", Verb.RELEASE: "released"}


@dataclass(frozen=True, slots=True)
class CommandEnd:
    """The result of such a command: what it recorded, and the outcomes of an alter."""

    verb: Verb
    about: About
    cluster_id: str
    finished: str
    stages: tuple[StageResult, ...]
    record: Alter | LedgerEdit
    outcomes: tuple[Outcome, ...]
    decisions: tuple[Decision, ...]
    """Who overrode which guards of an alter."""
    verification: Verification | None = None
    """What an alter read back."""


def format_command_end(end: CommandEnd, number: int) -> Json:
    """Return the record as `audit_schema` defines it; `number` is the number of this end.

    For an adopt or release, `before` and `after` are both the row's value: the cluster keeps it.
    """
    return {
        "schema": SCHEMA,
        "verb": end.verb.value,
        "by": end.record.by,
        "login": end.record.login,
        "reason": end.record.reason or None,
        "cluster": end.about.cluster,
        "run": end.about.run,
        "commit": end.about.commit,
        "started": end.about.started,
        "commit_source": end.about.provenance.source,
        "uncommitted": list(end.about.provenance.uncommitted),
        "cluster_id": end.cluster_id,
        "finished": end.finished,
        "end": number,
        "part": 1,
        "parts": 1,
        "answer": None,
        "stages": [stage._asdict() for stage in end.stages],
        "plan": None,
        "decisions": [decision.as_json() for decision in end.decisions],
        "rollback": None,
        "brokers": [asdict(broker) for broker in end.verification.brokers]
        if end.verification
        else [],
        "changes": list(_changes(end)),
    }


def _changes(end: CommandEnd) -> Iterator[dict[str, Any]]:
    record, by_entity = end.record, {outcome.entity: outcome for outcome in end.outcomes}
    read = end.verification
    wrong = {row.id: row.verdict for row in read.verdicts} if read else {}
    changes = (
        ((change.id, change.before, change.after, None) for change in record.changes)
        if isinstance(record, Alter)
        else ((row.id, row.value, row.value, row) for row in record.rows)
    )
    for (entity, key), before, after, row in changes:
        outcome = by_entity.get(entity)
        yield {
            "entity": entity,
            "key": key,
            "kind": _KINDS[end.verb],
            "before": json_number(before),
            "after": json_number(after),
            "outcome": outcome and outcome.status.value,
            "verdict": wrong.get(Key(entity, key), Verdict.VERIFIED)
            if read and outcome and outcome.was_written
            else None,
        } | without_nulls(
            {
                "owner": row and row.owner,
                "source": row and row.file,
                "error": outcome and outcome.error,
                "message": outcome and outcome.message,
            }
        )
