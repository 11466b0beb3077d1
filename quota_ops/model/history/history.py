"""The history: what each run found and did, and what follows from it for quotas and days.

`cluster` is the name of the cluster here, which several cluster ids may have had. Times are ISO
8601, UTC, to the second.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

from quota_ops.model.quotas.tables import derive_table


class Mode(StrEnum):
    """What a run did."""

    LOOK = "look"
    """It compared, and sent nothing."""
    APPLY = "apply"
    """It applied Git."""
    ROLLBACK = "rollback"
    """It rolled back an earlier run, or planned that."""
    ALTER = "alter"
    ADOPT = "adopt"
    RELEASE = "release"
    FOUND = "found"
    """It applied Git, and found that the cluster already stored a changed value of Git.

    `actual` is then the value that a run verified before.
    """


UNSENT = frozenset({Mode.ADOPT, Mode.RELEASE, Mode.FOUND})
"""The modes that change the ledger, and send nothing."""


class HistoryRow(NamedTuple):
    """A row of HISTORY: one end of a run (without an entity), or a quota that differed then.

    A run that is resumed has several ends: `ended` is when its last stage before each one ended.
    A later `revision` replaces the earlier ones of the same end.
    """

    cluster: str
    cluster_id: str | None
    run: str
    sequence: int | None
    """The number of the run in its run store."""
    started: str
    ended: str
    revision: int
    mode: str
    status: str
    """The word of the report (In sync, Pending, ...); empty for alter, adopt and release."""
    commit: str | None
    author: str | None
    """The person or job that ran it, if known."""
    run_reason: str | None
    stopped_at: str | None
    """The stage that did not succeed."""
    stopped: str | None
    """How that stage ended: refused, failed, interrupted, killed, not ended."""
    failure: str | None
    blocked_by: str | None
    """The names of the guards that blocked the plan, separated by commas."""
    overridden: str | None
    """The names of the guards that were overridden."""
    owned: int | None
    """How many managed rows the ledger had; in the row of a quota, those of its owner."""
    declared: int | None
    """How many quotas Git declared. Null if the run did not compare; so are the next counts."""
    in_sync: int | None
    drifted: int | None
    returned: int | None
    pending: int | None
    held: int | None
    unmanaged: int | None
    unsettled: int | None
    refused: int | None
    """How many of the unsettled rows the broker rejected."""
    changed: int | None
    """How many rows this run changed; they are in `in_sync` too if they are set."""
    entity: str | None
    key: str | None
    kind: str | None
    """The kind of the difference; `altered`, `adopted` or `released` for those commands."""
    action: str | None
    state: str | None
    """The status of the row at the end of the run, as `status` in report.json."""
    outcome: str | None
    """What happened to the write: accepted, refused, unknown, ..."""
    desired: float | None
    """What Git declares; for an overriding quota, what it declares for its clients."""
    actual: float | None
    """What the cluster stored before the run."""
    requested: float | None
    """The value that the run sent or validated; null if it cleared the quota, or sent nothing."""
    found: float | None
    """What the cluster stored when a run last looked after that, or null if it stored nothing."""
    found_by: str | None
    """The run that found it: this one or, for a write without a response, a later one.

    Null if no run has looked: what a broker accepted or left without a response is no look.
    """
    owner: str | None
    reason: str | None
    cut: float | None = None
    """By how many percent the write cuts a limit of clients at most; so are the next three columns
    those of a `Risk`.

    Null if the row is not written; 0 if the values before and after show what it does to whom.
    """
    rise: float | None = None
    unlimited: bool | None = None
    foreign: str | None = None
    clients: int | None = None
    """How many clients the inventory had, in the row of a run; null if they were not counted."""
    losing: int | None = None
    """How many of the clients would or may get less."""
    commit_author: str | None = None
    """The author of the commit, as Git shows it."""
    approver: str | None = None
    """Who approved the plan, or overrode its guards; several are separated by commas."""
    overriding: int | None = None
    """How many unmanaged quotas some clients get in place of what Git declares."""
    not_judged: int | None = None
    """How many managed quotas were not compared or changed, because a file was invalid."""
    policy: str | None = None
    """The fields of cluster.yaml that somebody approved with the plan of an applying run.

    They differ from the policy that was applied before: `drift: ask -> repair; ...`.
    """


class QuotaHistory(NamedTuple):
    """A row of QUOTAS: what happened to a quota; a drift lasts until a run finds the quota in sync.

    It also has quotas that never drifted, if a run or an alter set them.
    """

    cluster: str
    entity: str
    key: str
    owner: str | None
    drifts: int
    """How many times it drifted, a current drift included."""
    times_seen: int
    """How many ends of runs found it drifted."""
    first_seen: str | None
    """When a run first found it drifted."""
    last_seen: str | None
    drifted_since: str | None
    """When a run first found the current drift; null if it is not drifted."""
    kind: str | None
    """The kind of the last drift; so are the next two values."""
    desired: float | None
    actual: float | None
    repaired: str | None
    """When the last drift that ended was found in sync."""
    repaired_by: str | None
    """The run that set it then; null if it was in sync without a run of ours."""
    set_at: str | None
    """When a run last set or cleared it; so are the next four."""
    set_run: str | None
    set_commit: str | None
    set_by: str | None
    set_value: float | None
    altered_at: str | None
    """When an alter last changed it; so are the next four."""
    altered_run: str | None
    altered_by: str | None
    altered_reason: str | None
    altered_value: float | None


class DayHistory(NamedTuple):
    """A row of DAYS: a day (UTC) of a cluster; the states are those at the last look of the day."""

    cluster: str
    date: str
    runs: int
    looks: int
    failed: int
    """Runs that failed or were interrupted."""
    refused: int
    """Runs that stopped at validate, apply or verify: the broker rejected changes, for example."""
    blocked: int
    """Runs whose plan a guard blocked."""
    changed: int
    """Quotas that runs and alters set or cleared."""
    repaired: int
    """Drifts that ended."""
    repair_median: float | None
    """Seconds from when a drift was first seen until it was found in sync."""
    repair_p95: float | None
    declared: int | None
    in_sync: int | None
    drifted: int | None
    returned: int | None
    pending: int | None
    held: int | None
    unmanaged: int | None
    unsettled: int | None
    overriding: int | None = None
    not_judged: int | None = None


class OwnerDrift(NamedTuple):
    """A row of OWNERS: how many quotas of an owner and a key were seen drifted on a day."""

    cluster: str
    date: str
    owner: str | None
    key: str
    drifted: int


class Drift(NamedTuple):
    """A row of DRIFTS: a quota that was found drifted by one look after the other.

    `repaired` is null while it is drifted.
    """

    cluster: str
    entity: str
    key: str
    owner: str | None
    kind: str
    since: str
    last_seen: str
    times_seen: int
    desired: float | None
    actual: float | None
    run: str
    """The run that saw it last."""
    repaired: str | None
    repaired_by: str | None
    seconds: float | None
    """From `since` to `repaired`."""


HISTORY = derive_table("history", HistoryRow)
QUOTAS = derive_table("quotas", QuotaHistory)
DAYS = derive_table("days", DayHistory)
OWNERS = derive_table("owners", OwnerDrift)
DRIFTS = derive_table("drifts", Drift)


class QuotaDrift(NamedTuple):
    """A row of QUOTA_DRIFTS: a quota that runs found drifted, how many of them, and when."""

    cluster: str
    entity: str
    key: str
    owner: str | None
    times_seen: int
    first_seen: str
    last_seen: str


QUOTA_DRIFTS = derive_table("quota_drifts", QuotaDrift)


class FleetHistory(NamedTuple):
    """The last days of all clusters."""

    days: Sequence[DayHistory] = ()
    """By date."""
    quotas: Sequence[QuotaDrift] = ()
    """The quotas that drifted in these days."""
    changes: Mapping[str, str] = {}
    """When a run last wrote a quota that is still managed, by the name of the cluster."""
    looks: Mapping[str, str] = {}
    """When a run last compared a cluster that this overview does not know, by its name."""

    def group_days(self) -> Mapping[str, Sequence[DayHistory]]:
        """Return the days of each cluster on which a run compared it."""
        found: dict[str, list[DayHistory]] = defaultdict(list)
        for day in self.days:
            if day.declared is not None:
                found[day.cluster].append(day)
        return found


class OwnerTotal(NamedTuple):
    """An owner's quotas that drifted, and how often runs found one of them drifted."""

    owner: str
    quotas: int
    times: int


def rank_quotas(quotas: Iterable[QuotaDrift]) -> list[QuotaDrift]:
    """Return the quotas that most runs found drifted first."""
    return sorted(quotas, key=lambda quota: (-quota.times_seen, quota.cluster, quota.entity))


def rank_owners(quotas: Iterable[QuotaDrift]) -> list[OwnerTotal]:
    """Return the owners whose quotas were found drifted most often first, without "no owner"."""
    times: dict[str, list[int]] = defaultdict(list)
    for quota in quotas:
        if quota.owner is not None:
            times[quota.owner].append(quota.times_seen)
    totals = (OwnerTotal(owner, len(each), sum(each)) for owner, each in times.items())
    return sorted(totals, key=lambda total: (-total.times, -total.quotas, total.owner))


def compute_share(in_sync: int, declared: int) -> float | None:
    """Return the percentage that is in sync; None if nothing is declared."""
    return 100 * in_sync / declared if declared else None
