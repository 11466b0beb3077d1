"""Guards: which changes of a plan need an override or approval. Pure functions.

`judge` calls each guard; the thresholds that they compare with are `GuardThresholds` of a policy.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

from quota_ops.model.ceilings import exceeds_ceiling
from quota_ops.model.client_effects import InventoryEffects
from quota_ops.model.commit import named, short
from quota_ops.model.difference import WRITES, Action, Difference, Kind
from quota_ops.model.guard import Guard, GuardFinding, make_finding
from quota_ops.model.limit_guards import (
    SHARE_COUNTS_FROM,
    EffectOnLimits,
    Findings,
    cuts_a_limit,
    judge_clients,
    judge_values,
    name_rows,
)
from quota_ops.model.memory import CLEARED
from quota_ops.model.plan import is_raise, is_small
from quota_ops.model.policy import DriftPolicy, Policy
from quota_ops.model.rows import Key
from quota_ops.model.strict_policy import (
    APPLIED,
    APPLIED_OR_MERGED,
    Thresholds,
    build_unprotected_filter,
    combine_strictly,
)
from quota_ops.model.text import counted


@dataclass(frozen=True, slots=True)
class EarlierRuns:
    """What the ledger has of earlier runs: managed rows per owner, the last policy, the commits."""

    owned: int
    owners: Mapping[str | None, int]
    policy: Policy | None
    """The policy that cluster.yaml is compared with: the last applied one; in a review, that of
    the merge base."""
    commits: tuple[str, ...]
    overtaken_by: str | None = None
    """The commit that was applied after this run began."""
    old_ledger: str | None = None
    """Why the ledger is, or may be, an older copy; None if it is the newest."""
    others: tuple[Policy, ...] | None = None
    """In a review: the last applied policy and that of the target branch, as far as they are known.
    Their stricter values count too."""

    @property
    def policies(self) -> tuple[Policy, ...]:
        """The policies whose stricter values count beside those of the plan's own policy."""
        return tuple(one for one in (*(self.others or ()), self.policy) if one is not None)

    @property
    def strict_policy(self) -> Policy | None:
        """The stricter of all these policies, field by field; None without any."""
        return reduce(combine_strictly, self.policies) if self.policies else None

    @property
    def source(self) -> str:
        """What these policies are, in words."""
        return APPLIED if self.others is None else APPLIED_OR_MERGED


def judge(
    writes: Sequence[Difference],
    *,
    policy: Policy,
    commit: str | None,
    desired: int,
    earlier: EarlierRuns,
    effects: Mapping[Key, EffectOnLimits] | None = None,
    clients: InventoryEffects | None = None,
) -> tuple[GuardFinding, ...]:
    """Return the guards that block a plan, by the strictest of its policy and the earlier ones.

    `effects` are those of the writes on classes of clients, `clients` those on the clients of the
    inventory. The message of a guard that blocks only by an earlier policy mentions it.

    A row whose temporary value ended was judged when that value was planned: what it returns to was
    declared then. No guard about a row's value blocks it.
    """
    thresholds = Thresholds(policy, earlier.strict_policy, earlier.source)
    new = [row for row in writes if not row.is_return]
    clears = [row for row in new if row.action is Action.CLEAR]
    return (
        *_removals(clears, thresholds, earlier),
        *_owners(clears, new, earlier),
        *judge_values(new, thresholds, effects or {}),
        *_by_kind(new, thresholds),
        *_late_and_returned(new, thresholds),
        *_unprotected(writes, policy, earlier),
        *_defaults(new),
        *(judge_clients(clients, effects or {}, thresholds) if new or not writes else ()),
        *_commits_and_policy(writes, policy, commit, earlier),
        *_old_ledger(clears, earlier),
        *_empty(clears, desired),
    )


def _empty(clears: Sequence[Difference], desired: int) -> Findings:
    if clears and not desired:
        yield make_finding(Guard.EMPTY_DESIRED, "Git declares no quota", clears)


def _removals(
    clears: Sequence[Difference], thresholds: Thresholds, earlier: EarlierRuns
) -> Findings:
    most, removed = thresholds.of("removals"), len(clears)
    share = 100 * removed / earlier.owned if earlier.owned else 0.0
    least = thresholds.of("removals_share")
    if removed > most.value:
        words = f"{counted(removed, 'removal')}, more than {most.value:,}{most.source}"
        yield make_finding(Guard.REMOVALS, words, clears, share)
    elif removed >= SHARE_COUNTS_FROM and share > least.value:
        words = (
            f"{removed:,} of {counted(earlier.owned, 'managed row')} would be removed, more than "
        )
        yield make_finding(Guard.REMOVALS, f"{words}{least.value:g} %{least.source}", clears, share)


_NOT_OWNED = frozenset({Kind.UNMANAGED, Kind.RETURNED})


def _owners(
    clears: Sequence[Difference], writes: Sequence[Difference], earlier: EarlierRuns
) -> Findings:
    cleared: dict[str | None, list[Difference]] = defaultdict(list)
    for row in clears:
        cleared[row.owner].append(row)
    lost = Counter(row.owner for row in clears if row.kind not in _NOT_OWNED)
    new = {row.owner for row in writes if row.action is not Action.CLEAR}
    for owner, rows in sorted(lost.items(), key=str):
        if owner is not None and rows >= earlier.owners.get(owner, rows + 1):
            every = f"every row that {owner} has now" if owner in new else f"every row of {owner}"
            words = f"{every} would be cleared ({rows:,})"
            yield make_finding(Guard.OWNER_REMOVED, words, cleared[owner])


def _by_kind(writes: Sequence[Difference], thresholds: Thresholds) -> Findings:
    for kind, guard, words in (
        (Kind.TAKEOVER, Guard.TAKEOVER, "unmanaged, with another value on the cluster"),
        (Kind.CONFLICT, Guard.CONFLICT, "changed both in Git and on the cluster"),
        (Kind.CHANGED_SINCE, Guard.CHANGED_SINCE, "removed from Git, then changed on the cluster"),
        (Kind.DRIFTED, Guard.DRIFT, f"changed on the cluster, and {thresholds.drift_words}"),
    ):
        rows = [row for row in writes if row.kind is kind]
        if rows and (kind is not Kind.DRIFTED or thresholds.strict.drift is not DriftPolicy.REPAIR):
            yield make_finding(guard, f"{name_rows(rows)} {words}", rows)


def _unprotected(writes: Sequence[Difference], policy: Policy, earlier: EarlierRuns) -> Findings:
    tests = [build_unprotected_filter(policy, one) for one in earlier.policies]
    rows = [row for row in writes if any(is_unprotected(row) for is_unprotected in tests)]
    if rows:
        words = f"would change, although excluded by the {earlier.source} policy"
        yield make_finding(Guard.UNPROTECTED, f"{name_rows(rows)} {words}", rows)


def _late_and_returned(writes: Sequence[Difference], thresholds: Thresholds) -> Findings:
    late = [row for row in writes if row.kind is Kind.LATE_WRITE]
    if late and thresholds.strict.drift is not DriftPolicy.REPAIR:
        seems = f"the write of run {late[0].run} seems to have arrived late"
        yield make_finding(
            Guard.LATE_WRITE, f"{name_rows(late)}: {seems}, and {thresholds.drift_words}", late
        )
    returned = [row for row in writes if row.kind is Kind.RETURNED]
    if returned:
        first = returned[0]
        did = "cleared" if first.memory == CLEARED else "wrote late"
        what = f"not in Git, and on the cluster with a value that run {first.run} {did}"
        yield make_finding(Guard.RETURNED, f"{name_rows(returned)}: {what}", returned)


def _defaults(writes: Sequence[Difference]) -> Findings:
    touched = [row for row in writes if row.has_default]
    if touched:
        message = f"{name_rows(touched)} would change; a default applies to many clients"
        yield make_finding(Guard.DEFAULT_TOUCHED, message, touched)


def _commits_and_policy(
    writes: Sequence[Difference], policy: Policy, commit: str | None, earlier: EarlierRuns
) -> Findings:
    now = policy.decisive_fields()
    before = now if earlier.policy is None else earlier.policy.decisive_fields()
    changed = sorted(name for name in now if now[name] != before[name])
    if changed:
        since = " since it was applied" if earlier.others is None else ""
        message = f"cluster.yaml changed{since}: {', '.join(changed)}"
        values = [[name, before[name], now[name]] for name in changed]
        yield make_finding(Guard.POLICY_CHANGED, message, what=values)
    if writes and commit in earlier.commits[:-1]:
        last = earlier.commits[-1]
        message = f"{named(str(commit))} was applied before, and {short(last)} after it"
        yield make_finding(Guard.WENT_BACK, message, what=last)
    elif writes and earlier.overtaken_by is not None:
        run = f"this run of {named(str(commit))}"
        message = f"{short(earlier.overtaken_by)} was applied after {run} began"
        yield make_finding(Guard.WENT_BACK, message, what=earlier.overtaken_by)


def _old_ledger(clears: Sequence[Difference], earlier: EarlierRuns) -> Findings:
    if clears and earlier.old_ledger is not None:
        yield make_finding(
            Guard.OLD_LEDGER,
            f"{name_rows(clears)} would be cleared based on {earlier.old_ledger}",
            clears,
        )


_ABOUT_CLEARS = {Guard.REMOVALS, Guard.OWNER_REMOVED, Guard.OLD_LEDGER, Guard.EMPTY_DESIRED}
_CONCERNED: Mapping[str, Callable[[Difference, Policy], bool]] = {
    Guard.RAISE: lambda row, policy: is_raise(row, policy.guards.raise_factor),
    Guard.SMALL_LIMIT: lambda row, policy: is_small(row, policy.guards),
    Guard.ABOVE_CEILING: exceeds_ceiling,
    Guard.DEFAULT_TOUCHED: lambda row, _policy: row.has_default,
    Guard.DRIFT: lambda row, _policy: row.kind is Kind.DRIFTED,
}


def is_blocked_by(
    guard: str, row: Difference, policy: Policy, effect: EffectOnLimits | None = None
) -> bool:
    """Return whether a guard blocks because of this row; some guards judge the whole plan.

    `policy` is the policy that the guards used, `effect` that of the row on clients.
    """
    if row.is_return:
        return False
    if row.action not in WRITES or guard in _ABOUT_CLEARS:
        return row.action is Action.CLEAR and guard in _ABOUT_CLEARS
    if guard == Guard.CUT:
        return cuts_a_limit(row, effect, policy.guards.cut_share)
    is_concerned = _CONCERNED.get(guard)
    return row.kind.value == guard if is_concerned is None else is_concerned(row, policy)
