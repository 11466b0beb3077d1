"""The content of the JSON files of a run, except values with their own module."""

from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple, Self
from uuid import uuid4

from msgspec import Struct, field

from quota_ops.model.commit import Provenance
from quota_ops.model.finding import Finding, InvalidFile, Silence
from quota_ops.model.plans.approval import Decision
from quota_ops.model.plans.hold import Hold
from quota_ops.model.plans.plan import PlanHead
from quota_ops.model.quotas.rows import DesiredRow, Key, LedgerRow, LostLimit
from quota_ops.model.runs.outcome import Outcome
from quota_ops.model.runs.stages import StageResult
from quota_ops.model.runs.verification import BrokerResult, RowVerdict


class About(Struct, frozen=True):
    """A run: its name, its cluster, when it began (ISO 8601, UTC), and the commit of its files."""

    run: str
    cluster: str
    started: str
    provenance: Provenance = field(default_factory=Provenance)
    sequence: int | None = None
    """Its number in its run store; None outside a store."""
    dag_id: str | None = None
    """The DAG that runs it; None on the command line."""
    cluster_id: str | None = None
    path: str | None = None
    """The path of the cluster's folder in its repository."""
    by: str | None = None
    """Who started it, if that is not the login."""
    login: str | None = None
    """The login of the process that started it."""
    as_of: str | None = None
    """The time that its plan is made for, if that is not the start."""

    @property
    def commit(self) -> str | None:
        """The commit of the files that the run read, if it is known."""
        return self.provenance.commit


class Beginning(Struct, frozen=True):
    """A run's commit, and the last applied commit when the run first began with it."""

    commit: str | None = None
    after: str | None = None


class Checked(Struct, frozen=True):
    """The findings of the files, every silence there, and the files that were left out.

    `code_owners` are the problems of CODEOWNERS, in words: they stop no run.
    """

    findings: tuple[Finding, ...] = ()
    silences: tuple[Silence, ...] = ()
    invalid: tuple[InvalidFile, ...] = ()
    code_owners: tuple[str, ...] = ()
    coming: tuple[DesiredRow, ...] = ()
    """The limits that begin at `until`, of rows that Git does not declare before."""


class Described(Struct, frozen=True):
    """What describe read besides quotas, and when (ISO 8601, UTC)."""

    at: str = ""
    cluster_id: str | None = None
    snapshot: str | None = None
    """The file that was read instead of the cluster."""
    brokers: tuple[str, ...] = ()
    ledger: str | None = None
    """The ledger file that was read."""
    old_ledger: str | None = None
    """Why that ledger may be an older copy, by the record outside its folder."""
    holds: tuple[Hold, ...] = ()
    lost: tuple[LostLimit, ...] = ()
    """The limits as in Git that no broker applies: ACTUAL, what applies, does not have them."""
    undivided: tuple[InvalidFile, ...] = ()
    """The files that were left out, because a limit of theirs cannot be divided by brokers."""
    clock_lead: float = 0.0
    """How many seconds this machine's clock was ahead of the run store's."""


class StoredPlan(PlanHead, frozen=True):
    """A plan without its rows, which are DIFFERENCES; `rows` is the SHA-256 of that file."""

    digest: str = ""
    rows: str = ""


class Findings(Struct, frozen=True):
    """Every finding, silenced or not."""

    findings: tuple[Finding, ...]


class Origin(NamedTuple):
    """What is known about who set a value on the cluster; it was set after `after`, if known.

    `after` is an ISO 8601 time.
    """

    words: str
    after: str | None = None


UNKNOWN = Origin("who set it, and when, is unknown")


class OriginOfRows(NamedTuple):
    """An origin, and the rows whose value has it."""

    origin: Origin
    rows: tuple[Key, ...]


class Origins(Struct, frozen=True):
    """The origins of values that are not in the ledger."""

    origins: tuple[OriginOfRows, ...]


class Outcomes(Struct, frozen=True):
    """The outcome of each entity, in the order of the batches; no two attempts have equal files."""

    attempt: str
    outcomes: tuple[Outcome, ...]

    @classmethod
    def of(cls, outcomes: Iterable[Outcome]) -> Self:
        """Return the outcomes of a new attempt."""
        return cls(uuid4().hex, tuple(outcomes))


class Decisions(Struct, frozen=True):
    """The decisions about a plan, in order."""

    decisions: tuple[Decision, ...]


class Verification(Struct, frozen=True):
    """What verify found; `applied` is the attempt of apply whose writes it compared."""

    at: str = ""
    """When it compared them (ISO 8601, UTC)."""
    verified: int = 0
    """How many rows have the expected value on every broker that responded."""
    applied: str | None = None
    brokers: tuple[BrokerResult, ...] = ()
    verdicts: tuple[RowVerdict, ...] = ()
    """Only the rows that are not verified."""
    earlier: bool = False
    """Whether apply or verify has begun again since."""
    addresses: int = 0
    """How many of the verified rows are quotas of a single IP address."""
    undeclared: int = 0
    """How many quotas are still stored that are not in Git, and that runs would clear."""
    moved: int = 0
    """How many of these were changed, or came back, since a run recorded them."""

    @property
    def compared(self) -> int:
        """How many rows verify compared."""
        return self.verified + len(self.verdicts)

    @property
    def skipped(self) -> int:
        """How many rows verify did not compare, because they are held or were not written."""
        return max((broker.skipped for broker in self.brokers), default=0)


class StageEnd(StageResult, frozen=True):
    """How a stage ended, and when (ISO 8601, UTC)."""

    at: str = ""

    @property
    def result(self) -> StageResult:
        """How it ended, without the time."""
        return StageResult(self.stage, self.status, self.seconds, self.message)


class Alter(Struct, frozen=True):
    """Who altered rows, and why; until when their entities are held, None to hold none."""

    by: str
    login: str
    """The login of the process, in addition to the given name `by`."""
    reason: str
    until: datetime | None = None


class LedgerEdit(Struct, frozen=True):
    """Rows that were added to the ledger, or removed from it, and by whom."""

    by: str
    reason: str
    login: str | None
    ledger: str | None
    """The ledger file with the change; None if there was nothing to change."""
    rows: tuple[LedgerRow, ...]


class Audited(Struct, frozen=True):
    """What was sent to the audit topic; `failure` is why the topic lacks the end of the run."""

    topic: str
    messages: int
    failure: str | None


class Pruned(Struct, frozen=True):
    """When `prune` removed all but the records of a run."""

    at: str
