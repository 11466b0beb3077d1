"""The record of a run's end, as its folder and the audit topic have it."""

from typing import Literal, NamedTuple

from msgspec import Struct

from quota_ops.model.commit import CommitSource
from quota_ops.model.plans.approval import Decision
from quota_ops.model.plans.guard import GuardFinding
from quota_ops.model.runs.outcome import Status
from quota_ops.model.runs.report import Verb
from quota_ops.model.runs.stages import StageResult
from quota_ops.model.runs.verification import BrokerResult, Verdict


class Answer(Struct, frozen=True):
    """The status and the sentence that every output shows."""

    status: str
    sentence: str


class EndedPlan(Struct, frozen=True):
    """The digest of the plan, and the guards that found something."""

    digest: str
    guards: tuple[GuardFinding, ...]


class EndedRollback(Struct, frozen=True):
    """The run that was rolled back, by whom and why."""

    run: str
    by: str
    login: str | None
    reason: str


class End(Struct, frozen=True):
    """How a run ended: who approved which plan, and what each stage and broker answered."""

    schema: Literal[1]
    """Raised when a field is removed or changes its meaning; new fields do not raise it."""
    verb: Verb | None
    """The command that changed something without a plan of Git; None for a run that compares."""
    by: str | None
    login: str | None
    reason: str | None
    cluster: str
    cluster_id: str | None
    run: str
    end: int
    """The number of this end: a run that is reported again ends again."""
    commit: str | None
    commit_source: CommitSource | None
    uncommitted: tuple[str, ...]
    started: str
    finished: str
    answer: Answer
    stages: tuple[StageResult, ...]
    plan: EndedPlan | None
    decisions: tuple[Decision, ...]
    rollback: EndedRollback | None
    brokers: tuple[BrokerResult, ...]
    changed: int
    """How many rows got another value from it, whether or not that was read back."""


class Change(NamedTuple):
    """A row that a run was to write, and what became of it."""

    entity: str
    key: str
    kind: str
    before: float | None
    after: float | None
    outcome: Status | None
    verdict: Verdict | None
    owner: str | None = None
    reason: str | None = None
    source: str | None = None
    error: str | None = None
    message: str | None = None
    seen: tuple[tuple[int, float | None], ...] = ()
    """Other values than `after`, each with the broker that stores it."""


class EndMessage(End, frozen=True):
    """The end of a run in the audit topic, with some of its changes, if they are many."""

    part: int
    parts: int
    changes: tuple[Change, ...]
