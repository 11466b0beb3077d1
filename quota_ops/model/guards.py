"""Guards: what a plan must not do without a person's word. Pure; each says why in one line."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Self

from quota_ops.model.commit import named, short
from quota_ops.model.difference import WRITES, Action, Difference, Kind
from quota_ops.model.memory import CLEARED
from quota_ops.model.numbers import counted
from quota_ops.model.plan import GuardFinding, is_cut
from quota_ops.model.policy import YOUNGER, DriftPolicy, Policy

SHARE_COUNTS_FROM = 5
"""Below so many removals their share says nothing: one of four rows is 25 percent."""


class Guard(StrEnum):
    """The guards' names, as `--allow` takes them; `meaning` says when each asks a person."""

    meaning: str

    def __new__(cls, name: str, meaning: str) -> Self:
        """Make a name that carries its meaning."""
        guard = str.__new__(cls, name)
        guard._value_, guard.meaning = name, meaning
        return guard

    REMOVALS = (
        "removals",
        "More removals than `guards.removals`, or a larger share of our rows than is allowed.",
    )
    OWNER_REMOVED = "owner_removed", "All rows of one owner would be cleared."
    CUT = "cut", "A limit would fall by more than `guards.cut_share` percent."
    DEFAULT_TOUCHED = (
        "default_touched",
        "A default entity would change: it holds for everyone without a quota of their own.",
    )
    TAKEOVER = "takeover", "A value that no run of ours put there would be replaced."
    CONFLICT = "conflict", "Git and the cluster both moved since the last run."
    CHANGED_SINCE = (
        "changed_since",
        "A row that Git removed was changed on the cluster since we put it there.",
    )
    LATE_WRITE = (
        "late_write",
        "The policy says `drift: ask` or `drift: report`, and an earlier run's write came late.",
    )
    RETURNED = (
        "returned",
        "A row that is not in Git has a value again that a run cleared, or wrote late.",
    )
    DRIFT = "drift", "The policy says `drift: ask`, and somebody changed a row of ours."
    POLICY_CHANGED = "policy_changed", "cluster.yaml differs from the policy that was last applied."
    WENT_BACK = "went_back", "The ledger has already moved past this commit."
    OLD_LEDGER = (
        "old_ledger",
        "Rows would be cleared, and the ledger is an older copy of the one that runs wrote.",
    )
    EMPTY_DESIRED = (
        "empty_desired",
        "Git describes no quota at all, and rows of ours would be cleared.",
    )


MEANINGS: Mapping[str, str] = {guard.value: guard.meaning for guard in Guard}


@dataclass(frozen=True, slots=True)
class Past:
    """What the ledger knows: rows of ours per owner, the last applied policy, applied commits."""

    owned: int
    owners: Mapping[str | None, int]
    policy: Mapping[str, Any] | None
    commits: tuple[str, ...]
    overtaken_by: str | None = None
    """The commit that was applied after this run first began at its own."""
    ledger_end: str | None = None
    """The file that the ledger ended with, where it is now an older copy."""


def judge(
    writes: Sequence[Difference],
    *,
    policy: Policy,
    commit: str | None,
    desired: int,
    past: Past,
    allowed: Mapping[str, str],
) -> tuple[GuardFinding, ...]:
    """What the guards say of a plan's writes; `allowed` maps a guard to the reason it may pass."""
    clears = [row for row in writes if row.action is Action.CLEAR]
    findings = (
        *_removals(clears, policy, past),
        *_owners(clears, past),
        *_cuts(writes, policy),
        *_by_kind(writes, policy),
        *_earlier(writes, policy),
        *_defaults(writes),
        *_history(writes, policy, commit, past),
        *_old_ledger(clears, past),
        *([(Guard.EMPTY_DESIRED, "Git describes no quota")] if clears and not desired else []),
    )
    return tuple(
        GuardFinding(guard.value, message, allowed.get(guard.value)) for guard, message in findings
    )


Findings = Iterator[tuple[Guard, str]]


def _removals(clears: Sequence[Difference], policy: Policy, past: Past) -> Findings:
    limits, removed = policy.guards, len(clears)
    share = 100 * removed / past.owned if past.owned else 0.0
    if removed > limits.removals:
        yield Guard.REMOVALS, f"{counted(removed, 'removal')}, more than {limits.removals:,}"
    elif removed >= SHARE_COUNTS_FROM and share > limits.removals_share:
        rows, most = (
            f"{removed:,} of our {counted(past.owned, 'row')}",
            f"{limits.removals_share:g} %",
        )
        yield Guard.REMOVALS, f"{rows} would be removed, more than {most}"


_NOT_OWNED = frozenset({Kind.UNMANAGED, Kind.RETURNED})


def _owners(clears: Sequence[Difference], past: Past) -> Findings:
    lost = Counter(row.owner for row in clears if row.kind not in _NOT_OWNED)
    for owner, rows in sorted(lost.items(), key=str):
        if owner is not None and rows >= past.owners.get(owner, rows + 1):
            yield Guard.OWNER_REMOVED, f"every row of {owner} would be cleared ({rows:,})"


def _cuts(writes: Sequence[Difference], policy: Policy) -> Findings:
    limit = policy.guards.cut_share
    cuts = [row for row in writes if is_cut(row, beyond=limit)]
    if cuts:
        yield Guard.CUT, f"{_rows(cuts)} would fall by more than {limit:g} %"


def _by_kind(writes: Sequence[Difference], policy: Policy) -> Findings:
    for kind, guard, words in (
        (Kind.TAKEOVER, Guard.TAKEOVER, "has an unmanaged value"),
        (Kind.CONFLICT, Guard.CONFLICT, "moved both in Git and on the cluster"),
        (Kind.CHANGED_SINCE, Guard.CHANGED_SINCE, "left Git, and changed on the cluster since"),
        (Kind.DRIFTED, Guard.DRIFT, "changed on the cluster, and the policy says ask"),
    ):
        rows = [row for row in writes if row.kind is kind]
        if rows and (kind is not Kind.DRIFTED or policy.drift is DriftPolicy.ASK):
            yield guard, f"{_rows(rows)} {words}"


def _earlier(writes: Sequence[Difference], policy: Policy) -> Findings:
    late = [row for row in writes if row.kind is Kind.LATE_WRITE]
    if late and policy.drift is not DriftPolicy.REPAIR:
        seems = f"the write of run {late[0].run} seems to have arrived late"
        yield Guard.LATE_WRITE, f"{_rows(late)}: {seems}, and the policy says {policy.drift}"
    returned = [row for row in writes if row.kind is Kind.RETURNED]
    if returned:
        first = returned[0]
        did = "cleared" if first.memory == CLEARED else "wrote late"
        what = f"not in Git, and on the cluster with a value that run {first.run} {did}"
        yield Guard.RETURNED, f"{_rows(returned)}: {what}"


def _defaults(writes: Sequence[Difference]) -> Findings:
    touched = [row for row in writes if row.has_default]
    if touched:
        yield Guard.DEFAULT_TOUCHED, f"{_rows(touched)} would change: a default holds for many"


def _history(
    writes: Sequence[Difference], policy: Policy, commit: str | None, past: Past
) -> Findings:
    now = policy.judged()
    before = YOUNGER | dict(now if past.policy is None else past.policy)
    changed = sorted(name for name in now if now[name] != before.get(name))
    if changed:
        yield (
            Guard.POLICY_CHANGED,
            f"cluster.yaml changed since it was applied: {', '.join(changed)}",
        )
    if writes and commit in past.commits[:-1]:
        yield (
            Guard.WENT_BACK,
            f"{named(str(commit))} was applied before, {short(past.commits[-1])} came after it",
        )
    elif writes and past.overtaken_by is not None:
        yield (
            Guard.WENT_BACK,
            f"{short(past.overtaken_by)} was applied after this run of {named(str(commit))} began",
        )


def _old_ledger(clears: Sequence[Difference], past: Past) -> Findings:
    if clears and past.ledger_end is not None:
        yield (
            Guard.OLD_LEDGER,
            f"{_rows(clears)} would go by an older copy of the ledger: it was at {past.ledger_end}",
        )


def _rows(rows: Sequence[Difference]) -> str:
    """The first rows by name and how many more there are."""
    names = list(dict.fromkeys(f"{row.entity} {row.key}" for row in rows))
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1:,} more"


def concerns(guard: str, row: Difference, policy: Policy) -> bool:
    """Whether a row is one of those that make a guard speak; some guards judge the whole plan."""
    if row.action not in WRITES:
        return False
    match guard:
        case Guard.REMOVALS | Guard.OWNER_REMOVED | Guard.OLD_LEDGER | Guard.EMPTY_DESIRED:
            return row.action is Action.CLEAR
        case Guard.CUT:
            return is_cut(row, beyond=policy.guards.cut_share)
        case Guard.DEFAULT_TOUCHED:
            return row.has_default
        case Guard.DRIFT:
            return row.kind is Kind.DRIFTED
        case _:
            return row.kind.value == guard


def unknown_guards(names: Iterable[str]) -> tuple[str, ...]:
    """The names that are no guard's."""
    return tuple(name for name in names if name not in set(Guard))
