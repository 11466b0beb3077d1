"""The report of a run, and its line in the list of runs."""

from collections.abc import Callable, Mapping
from enum import StrEnum
from functools import wraps
from typing import Any, Concatenate, NamedTuple, ParamSpec, TypeVar

from msgspec import Struct

from quota_ops.model.clusters.cluster_facts import ClusterFacts, Metadata
from quota_ops.model.code_host import Repository
from quota_ops.model.commit import Changes
from quota_ops.model.finding import Finding, InvalidFile
from quota_ops.model.history.past import Past
from quota_ops.model.plans.approval import Decision
from quota_ops.model.plans.capacity import Promises
from quota_ops.model.plans.client_effects import InventoryEffects
from quota_ops.model.plans.effect import Effect
from quota_ops.model.plans.plan import Plan
from quota_ops.model.quotas.difference import Difference
from quota_ops.model.quotas.owners import OwnerChange
from quota_ops.model.quotas.rows import DesiredRow, HoldRow, Key, OverrideRow
from quota_ops.model.runs.outcome import Outcome
from quota_ops.model.runs.rollback import Rollback
from quota_ops.model.runs.run import About, Checked, Described, Origin, Verification
from quota_ops.model.runs.stages import Life, StageResult
from quota_ops.model.stored import to_json
from quota_ops.model.usage.recorded import RecordedUse
from quota_ops.model.usage.throttling import ThrottledNow, Throttling


class Verb(StrEnum):
    """A command that changes something without a plan of Git."""

    ALTER = "alter"
    ADOPT = "adopt"
    RELEASE = "release"


class Record(NamedTuple):
    """What a run without a plan of Git did: a word, `Altered`, and a sentence; by whom, and why."""

    word: str
    reason: str
    verb: Verb
    by: str
    login: str | None
    why: str
    """The reason that the person gave; empty without one."""
    changes: tuple[Difference, ...]
    """Its rows; an adopt or a release leaves their values as they are."""


class Report(About, frozen=True, eq=False, dict=True, kw_only=True):
    """The data of one run for its reports; parts that the run did not reach are None or empty.

    A report equals only itself, and keeps what `once_per_report` has derived from its rows.
    """

    finished: str
    versions: tuple[tuple[str, str], ...]
    stages: tuple[StageResult, ...] = ()
    plan: Plan | None = None
    validated: tuple[Outcome, ...] = ()
    applied: tuple[Outcome, ...] = ()
    writes: bool = False
    """Whether the run writes to the cluster; a drift report does not."""
    checked: Checked = Checked()
    described: Described = Described()
    verification: Verification = Verification()
    superseded: Verification | None = None
    """What verify read back before the apply or verify that began last; None without such."""
    facts: ClusterFacts | None = None
    metadata: Metadata | None = None
    audit: str | None = None
    """Why the audit topic lacks the end of this run."""
    history: str | None = None
    """Why the history lacks this run."""
    rollback: Rollback | None = None
    """What this run rolls back; None for a run that applies Git."""
    decisions: tuple[Decision, ...] = ()
    """The decisions about the plan, in order."""
    findings: tuple[Finding, ...] = ()
    """The findings, including silenced ones."""
    declared: Mapping[Key, DesiredRow] = {}
    """The declarations in Git of the rows in `verdicts`, by entity and key."""
    origins: Mapping[Key, Origin] = {}
    """The origins of values that the ledger does not have, by entity and key."""
    overrides: tuple[OverrideRow, ...] | None = None
    """The unmanaged rows that take clients from declared ones, each with such a declared row; None
    if the run did not compare that."""
    protected: tuple[OverrideRow, ...] = ()
    """The protected quotas that come first for clients of declared ones, which is accepted."""
    leaving: tuple[OverrideRow, ...] = ()
    """The quotas that a run clears, and that come first for clients of declared ones until then."""
    effects: Mapping[Key, Effect] = {}
    """The effects of writes that the values before and after do not show, by entity and key."""
    clients: InventoryEffects | None = None
    """How the writes affect the clients of the inventory; None without one, or without writes."""
    throttling: Throttling | None = None
    """Whom the cuts would have throttled in the last days; None if cluster.yaml names no source of
    use, or the plan cuts no limit."""
    held: tuple[HoldRow, ...] = ()
    """The held entities of a run without a plan; a plan has its own holds."""
    past: Past | None = None
    """What happened before this run; None if it was not read."""
    life: Life | None = None
    """Whether its process is alive; None if the end of its writes was recorded, or read back."""
    owner_changes: tuple[OwnerChange, ...] = ()
    """The managed quotas that get a different owner than in the ledger."""
    record: Record | None = None
    """What an alter, adopt or release did; None for a run that compares."""
    repository: Repository | None = None
    """Where people can see the files that the run read, if that is known."""
    changes: Changes | None = None
    """The commits since the last applied one; None for a run that does not check files."""
    looked: str | None = None
    """When verify, or else describe, read the cluster; None if nothing was read."""
    promises: tuple[Promises, ...] = ()
    """What Git promises on each broker beside its capacity; empty if no capacity is declared."""
    use: RecordedUse | None = None
    """What clients used on recorded days, beside the limits of this run; None if there are none."""
    throttled: ThrottledNow | None = None
    """Which clients were throttled when the run planned; None without `usage` in cluster.yaml."""

    @property
    def invalid(self) -> tuple[InvalidFile, ...]:
        """The quotas files with problems, which the run left out."""
        return (*self.checked.invalid, *self.described.undivided)


_Options = ParamSpec("_Options")
_Derived = TypeVar("_Derived")


def once_per_report(
    derive: Callable[Concatenate[Report, _Options], _Derived],
) -> Callable[Concatenate[Report, _Options], _Derived]:
    """Keep what a function derives from a report with that report, for its other callers.

    A task that works on many clusters derives the rows of several reports at the same time.
    """

    @wraps(derive)
    def find(report: Report, /, *args: _Options.args, **options: _Options.kwargs) -> _Derived:
        kept, name = report.__dict__, f"{derive.__name__}{args}{options}"
        if name not in kept:
            kept[name] = derive(report, *args, **options)
        found: _Derived = kept[name]
        return found

    return find


class RunSummary(Struct, frozen=True):
    """A summary of one run in the run store, as far as its artifacts can be read."""

    cluster: str
    cluster_id: str | None
    """The id of the cluster; None if the run did not read its cluster.yaml."""
    run: str
    path: str
    started: str | None
    """ISO 8601, UTC; if run.json is damaged, the time in the run's name, or None without one."""
    commit: str | None
    status: str
    """The status in its report; how far it got, if no report of it can be made."""
    sentence: str | None
    """The sentence of its report, or why a stage stopped."""
    digest: str | None
    changes: int
    """How many keys it changed on the cluster."""
    stopped: str | None
    """Why it ended early: `blocked by guards`, or a stage and how it ended; None if it did not."""
    decisions: tuple[Decision, ...]
    """The decisions about its plan, in order."""
    size: int
    """Its size in the run store, in bytes."""
    by: str | None = None
    """The author of an alter, adopt, release or rollback."""
    trouble: str | None = None
    """Why parts of it could not be read."""

    def as_json(self) -> dict[str, Any]:
        """Return the run as JSON values."""
        values: dict[str, Any] = to_json(RunSummary, self)
        return values
