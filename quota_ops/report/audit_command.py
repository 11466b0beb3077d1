"""The audit record of an `alter`, `adopt` or `release`, which are runs without a plan."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from quota_ops.model.approval import Decision
from quota_ops.model.outcome import Outcome
from quota_ops.model.report import StageResult
from quota_ops.report.audit import SCHEMA, Json
from quota_ops.store.json_text import without_nulls


class Verb(StrEnum):
    """A command that changes something without a plan."""

    ALTER = "alter"
    ADOPT = "adopt"
    RELEASE = "release"


_KINDS = {Verb.ALTER: "altered", Verb.ADOPT: "adopted", Verb.RELEASE: "released"}


@dataclass(frozen=True, slots=True)
class CommandEnd:
    """The result of such a command: the JSON that it recorded, and the outcomes of an alter."""

    verb: Verb
    about: Mapping[str, Any]
    cluster_id: str
    finished: str
    stages: tuple[StageResult, ...]
    artifact: Mapping[str, Any]
    outcomes: tuple[Outcome, ...]
    decisions: tuple[Decision, ...]
    """Who overrode which guards of an alter."""


def format_command_end(end: CommandEnd, number: int) -> Json:
    """Return the record as `audit_schema` defines it; `number` is the number of this end.

    For an adopt or release, `before` and `after` are both the row's value: the cluster keeps it.
    Raises KeyError or TypeError if the JSON is not that of the command.
    """
    return {
        "schema": SCHEMA,
        "verb": end.verb.value,
        "by": end.artifact.get("by"),
        "login": end.artifact.get("login"),
        "reason": end.artifact.get("reason") or None,
        **{name: end.about[name] for name in ("cluster", "run", "commit", "started")},
        "commit_source": end.about["provenance"].source,
        "uncommitted": list(end.about["provenance"].uncommitted),
        "cluster_id": end.cluster_id,
        "finished": end.finished,
        "end": number,
        "part": 1,
        "parts": 1,
        "answer": None,
        "stages": [stage._asdict() for stage in end.stages],
        "plan": None,
        "decisions": [one.as_json() for one in end.decisions],
        "rollback": None,
        "brokers": [],
        "changes": list(_changes(_KINDS[end.verb], end.artifact, end.outcomes)),
    }


def _changes(
    kind: str, artifact: Mapping[str, Any], outcomes: Iterable[Outcome]
) -> Iterator[dict[str, Any]]:
    by_entity = {one.entity: one for one in outcomes}
    for row in artifact["changes"] if "changes" in artifact else artifact["rows"]:
        outcome = by_entity.get(row["entity"])
        yield {
            "entity": row["entity"],
            "key": row["key"],
            "kind": kind,
            "before": row["before"] if "before" in row else row["value"],
            "after": row["after"] if "after" in row else row["value"],
            "outcome": outcome and outcome.status.value,
            "verdict": None,
        } | without_nulls(
            {
                "owner": row.get("owner"),
                "source": row.get("file"),
                "error": outcome and outcome.error,
                "message": outcome and outcome.message,
            }
        )
