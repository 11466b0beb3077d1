"""Guards: which changes of a plan need an override or approval. Pure functions.

`judge` calls each guard; the thresholds that they compare with are `GuardThresholds` of a policy.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from quota_ops.model.client_effects import InventoryEffects
from quota_ops.model.commit import named, short
from quota_ops.model.difference import WRITES, Action, Difference, Kind
from quota_ops.model.guard import Guard, GuardFinding, make_finding
from quota_ops.model.memory import CLEARED
from quota_ops.model.plan import is_cut, is_raise, is_small
from quota_ops.model.policy import DriftPolicy, Policy
from quota_ops.model.quota import format_limit
from quota_ops.model.strict_policy import Thresholds, build_unprotected_filter
from quota_ops.model.text import counted

SHARE_COUNTS_FROM = 5
"""Below this number of removals the share means little: one of four rows is 25 percent."""


@dataclass(frozen=True, slots=True)
class EarlierRuns:
    """What the ledger has of earlier runs: managed rows per owner, the last policy, the commits."""

    owned: int
    owners: Mapping[str | None, int]
    policy: Policy | None
    commits: tuple[str, ...]
    overtaken_by: str | None = None
    """The commit that was applied after this run began."""
    old_ledger: str | None = None
    """Why the ledger is, or may be, an older copy; None if it is the newest."""


def judge(
    writes: Sequence[Difference],
    *,
    policy: Policy,
    commit: str | None,
    desired: int,
    earlier: EarlierRuns,
    clients: InventoryEffects | None = None,
) -> tuple[GuardFinding, ...]:
    """Return the guards that block a plan, by the stricter of its policy and the last applied one.

    `clients` is how the plan concerns the clients of the inventory.

    The message of a guard that blocks only by the last applied policy mentions it.
    """
    thresholds = Thresholds(policy, earlier.policy)
    clears = [row for row in writes if row.action is Action.CLEAR]
    return (
        *_removals(clears, thresholds, earlier),
        *_owners(clears, earlier),
        *judge_values(writes, thresholds),
        *_by_kind(writes, thresholds),
        *_late_and_returned(writes, thresholds),
        *_unprotected(writes, policy, earlier.policy),
        *_defaults(writes),
        *_blast_radius(clients, thresholds),
        *_commits_and_policy(writes, policy, commit, earlier),
        *_old_ledger(clears, earlier),
        *_empty(clears, desired),
    )


Findings = Iterator[GuardFinding]


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


def _owners(clears: Sequence[Difference], earlier: EarlierRuns) -> Findings:
    lost = Counter(row.owner for row in clears if row.kind not in _NOT_OWNED)
    for owner, rows in sorted(lost.items(), key=str):
        if owner is not None and rows >= earlier.owners.get(owner, rows + 1):
            theirs = [row for row in clears if row.owner == owner]
            words = f"every row of {owner} would be cleared ({rows:,})"
            yield make_finding(Guard.OWNER_REMOVED, words, theirs)


def judge_values(writes: Sequence[Difference], thresholds: Thresholds) -> Findings:
    """Yield the findings of the guards that compare a value before and after."""
    share, factor = thresholds.of("cut_share"), thresholds.of("raise_factor")
    cuts = [row for row in writes if is_cut(row, beyond=share.value)]
    if cuts:
        message = f"{_rows(cuts)} would fall by more than {share.value:g} %{share.source}"
        yield make_finding(Guard.CUT, message, cuts)
    raises = [row for row in writes if is_raise(row, factor.value)]
    if raises:
        message = f"{_rows(raises)} would rise to more than {factor.value:g} times{factor.source}"
        yield make_finding(Guard.RAISE, message, raises)
    small = [row for row in writes if is_small(row, thresholds.strict.guards)]
    if small:
        yield make_finding(Guard.SMALL_LIMIT, ", and ".join(_small_words(small, thresholds)), small)


def _small_words(small: Sequence[Difference], thresholds: Thresholds) -> Iterator[str]:
    """Yield a sentence for the limits of each unit, starting with the unit of the first row."""
    by_threshold: dict[str, list[Difference]] = {}
    for row in small:
        name = "small_percentage" if row.key == "request_percentage" else "small_byte_rate"
        by_threshold.setdefault(name, []).append(row)
    for name, rows in by_threshold.items():
        least = thresholds.of(name)
        below = f"below {format_limit(rows[0].key, least.value)}{least.source}"
        yield f"{_rows(rows)} would be set {below}"


def _by_kind(writes: Sequence[Difference], thresholds: Thresholds) -> Findings:
    for kind, guard, words in (
        (Kind.TAKEOVER, Guard.TAKEOVER, "unmanaged, with another value on the cluster"),
        (Kind.CONFLICT, Guard.CONFLICT, "changed both in Git and on the cluster"),
        (Kind.CHANGED_SINCE, Guard.CHANGED_SINCE, "removed from Git, then changed on the cluster"),
        (Kind.DRIFTED, Guard.DRIFT, f"changed on the cluster, and {thresholds.drift_words}"),
    ):
        rows = [row for row in writes if row.kind is kind]
        if rows and (kind is not Kind.DRIFTED or thresholds.strict.drift is not DriftPolicy.REPAIR):
            yield make_finding(guard, f"{_rows(rows)} {words}", rows)


def _unprotected(writes: Sequence[Difference], policy: Policy, applied: Policy | None) -> Findings:
    rows = list(filter(build_unprotected_filter(policy, applied), writes))
    if rows:
        words = "would change, although excluded by the last applied policy"
        yield make_finding(Guard.UNPROTECTED, f"{_rows(rows)} {words}", rows)


def _late_and_returned(writes: Sequence[Difference], thresholds: Thresholds) -> Findings:
    late = [row for row in writes if row.kind is Kind.LATE_WRITE]
    if late and thresholds.strict.drift is not DriftPolicy.REPAIR:
        seems = f"the write of run {late[0].run} seems to have arrived late"
        yield make_finding(
            Guard.LATE_WRITE, f"{_rows(late)}: {seems}, and {thresholds.drift_words}", late
        )
    returned = [row for row in writes if row.kind is Kind.RETURNED]
    if returned:
        first = returned[0]
        did = "cleared" if first.memory == CLEARED else "wrote late"
        what = f"not in Git, and on the cluster with a value that run {first.run} {did}"
        yield make_finding(Guard.RETURNED, f"{_rows(returned)}: {what}", returned)


def _defaults(writes: Sequence[Difference]) -> Findings:
    touched = [row for row in writes if row.has_default]
    if touched:
        message = f"{_rows(touched)} would change; a default applies to many clients"
        yield make_finding(Guard.DEFAULT_TOUCHED, message, touched)


def _blast_radius(clients: InventoryEffects | None, thresholds: Thresholds) -> Findings:
    if clients is None or not clients.total.losing:
        return
    total, most = clients.total, thresholds.of("blast_radius")
    least = thresholds.of("blast_radius_share")
    share = 100 * total.losing / total.clients
    if total.losing > most.value:
        lost = f"{counted(total.losing, 'client')} would be cut or newly limited, more than "
        words = f"{lost}{most.value:,}{most.source}"
        yield make_finding(Guard.BLAST_RADIUS, words, share=share, what="clients")
    elif total.losing >= SHARE_COUNTS_FROM and share > least.value:
        lost = f"{total.losing:,} of {counted(total.clients, 'client')} would be cut or newly "
        words = f"{lost}limited, more than {least.value:g} %{least.source}"
        yield make_finding(Guard.BLAST_RADIUS, words, share=share, what="clients")


def _commits_and_policy(
    writes: Sequence[Difference], policy: Policy, commit: str | None, earlier: EarlierRuns
) -> Findings:
    now = policy.decisive_fields()
    before = now if earlier.policy is None else earlier.policy.decisive_fields()
    changed = sorted(name for name in now if now[name] != before[name])
    if changed:
        message = f"cluster.yaml changed since it was applied: {', '.join(changed)}"
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
            f"{_rows(clears)} would be cleared based on {earlier.old_ledger}",
            clears,
        )


def _rows(rows: Sequence[Difference]) -> str:
    """Format the first row, and the number of the others."""
    first = f"{rows[0].entity} {rows[0].key}"
    return first if len(rows) == 1 else f"{first} and {len(rows) - 1:,} more"


_ABOUT_CLEARS = {Guard.REMOVALS, Guard.OWNER_REMOVED, Guard.OLD_LEDGER, Guard.EMPTY_DESIRED}
_CONCERNED: Mapping[str, Callable[[Difference, Policy], bool]] = {
    Guard.CUT: lambda row, policy: is_cut(row, beyond=policy.guards.cut_share),
    Guard.RAISE: lambda row, policy: is_raise(row, policy.guards.raise_factor),
    Guard.SMALL_LIMIT: lambda row, policy: is_small(row, policy.guards),
    Guard.DEFAULT_TOUCHED: lambda row, _policy: row.has_default,
    Guard.DRIFT: lambda row, _policy: row.kind is Kind.DRIFTED,
}


def is_blocked_by(guard: str, row: Difference, policy: Policy) -> bool:
    """Return whether a guard blocks because of this row; some guards judge the whole plan.

    `policy` is the policy that the guards used.
    """
    if row.action not in WRITES or guard in _ABOUT_CLEARS:
        return row.action is Action.CLEAR and guard in _ABOUT_CLEARS
    is_concerned = _CONCERNED.get(guard)
    return row.kind.value == guard if is_concerned is None else is_concerned(row, policy)
