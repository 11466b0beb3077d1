"""The report of a run, its stages, and its line in the list of runs."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

from quota_ops.model.approval import Decision
from quota_ops.model.cluster_facts import ClusterFacts
from quota_ops.model.commit import Provenance
from quota_ops.model.finding import Finding
from quota_ops.model.metadata import Metadata
from quota_ops.model.outcome import Outcome
from quota_ops.model.plan import Plan
from quota_ops.model.rollback import Rollback
from quota_ops.model.rows import DesiredRow, HoldRow, Key
from quota_ops.model.verification import BrokerAnswer, RowVerdict


class Origin(NamedTuple):
    """Who put a value on the cluster, as far as it is known; it came there after `after`, if known.

    `after` is an ISO 8601 time.
    """

    words: str
    after: str | None = None


UNKNOWN = Origin("who set it, and when, is unknown")


STAGES = ("check", "describe", "diff", "plan", "validate", "apply", "verify", "report")


class StageStatus(StrEnum):
    """How a stage of a run ended."""

    DONE = "done"
    REFUSED = "refused"
    FAILED = "failed"
    INTERRUPTED = "interrupted"
    """By a signal, or found dead by a later run."""
    NOT_ENDED = "not ended"
    """At work, or killed before it could record its end."""
    NOT_RUN = "not run"


STOPPED = frozenset(
    {StageStatus.REFUSED, StageStatus.FAILED, StageStatus.INTERRUPTED, StageStatus.NOT_ENDED}
)
"""The stage did not do what it is for."""


class StageResult(NamedTuple):
    """A stage, how it ended, how long it took, and its message when it did not succeed."""

    stage: str
    status: StageStatus
    seconds: float | None = None
    message: str | None = None


def has_not_ended(stages: Iterable[StageResult]) -> bool:
    """Whether a run has recorded no end of what it writes: it is at work, or was killed."""
    return any(one.status is StageStatus.NOT_ENDED for one in stages)


class Record(NamedTuple):
    """What a run without a plan did: a word, `Altered`, and a sentence."""

    word: str
    reason: str


@dataclass(frozen=True, slots=True, eq=False)
class Report:
    """One run, ready to be laid out; parts that a run did not come to are None or empty.

    It equals nothing but itself, so that what is derived from its rows is found by it at once.
    """

    cluster: str
    cluster_id: str | None
    run: str
    provenance: Provenance
    started: str
    finished: str
    stages: tuple[StageResult, ...]
    plan: Plan | None
    validated: tuple[Outcome, ...]
    applied: tuple[Outcome, ...]
    brokers: tuple[BrokerAnswer, ...]
    verdicts: tuple[RowVerdict, ...]
    """Only the rows that are not verified."""
    verified: int
    """How many rows every answering broker holds as they should be."""
    versions: tuple[tuple[str, str], ...]
    writes: bool
    """Whether the run was one that writes; a drift report is not."""
    facts: ClusterFacts | None = None
    metadata: Metadata | None = None
    audit: str | None = None
    """Why the audit topic misses the end of this run."""
    rollback: Rollback | None = None
    """What this run rolls back; None of a run that makes the cluster what Git says."""
    decisions: tuple[Decision, ...] = ()
    """The decisions about the plan, in order."""
    findings: tuple[Finding, ...] = ()
    """Silenced ones too."""
    asked: Mapping[Key, DesiredRow] = field(default_factory=dict)
    """By entity and key, what Git says of the rows in `verdicts`."""
    origins: Mapping[Key, Origin] = field(default_factory=dict)
    """By entity and key, what is known of a value that the ledger does not know."""
    held: tuple[HoldRow, ...] = ()
    """The held entities of a run without a plan; a plan has its own holds."""
    record: Record | None = None
    """What an alter, adopt or release did; None of a run that compares."""

    @property
    def commit(self) -> str | None:
        """The commit of what the run read, if one is known."""
        return self.provenance.commit


@dataclass(frozen=True, slots=True)
class PastRun:
    """One run of the run store, as far as it left word of itself."""

    cluster: str
    run: str
    path: str
    started: str | None
    """ISO 8601, UTC; of a run whose run.json is damaged, what its name says, else None."""
    commit: str | None
    came_to: str
    """The status in its report, otherwise how far it got."""
    sentence: str | None
    """The sentence of its report, or why a stage stopped."""
    digest: str | None
    changes: int
    """How many keys it changed on the cluster."""
    decisions: tuple[Decision, ...]
    """The decisions about its plan, in order."""
    size: int
    """Its size in the run store, in bytes."""
    by: str | None = None
    """Who made an alter, adopt or release."""
    trouble: str | None = None
    """Why parts of it could not be read."""

    def as_json(self) -> dict[str, Any]:
        """The run as JSON values."""
        return asdict(self) | {"decisions": [one.as_json() for one in self.decisions]}
