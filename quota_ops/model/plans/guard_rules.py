"""Guards: which changes of a plan need an override or approval.

`judge` calls each guard, but `above_ceiling` is judged in `ceilings`; the thresholds that they
compare with are `GuardThresholds` of a policy.

All guards are functions of the artifacts of the run alone: the differences, the quotas and the
ledger at the time of describe, the policy, the commits, and the effects on clients. Apply judges
the plan again and has to find exactly the same, so no guard may use the time, the current cluster
or the current ledger.

A write that restores the value that was last verified is no change of a limit: it never is a cut, a
raise or any other risk, and the limits of other writes are compared as if it were restored already.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import reduce
from math import ceil
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from quota_ops.model.commit import is_git, named, short
from quota_ops.model.plans.ceilings import exceeds_ceiling
from quota_ops.model.plans.client_effects import InventoryEffects
from quota_ops.model.plans.effect import Risk
from quota_ops.model.plans.guard import OF_ALTER, Guard, GuardFinding, make_finding
from quota_ops.model.plans.ledger_edits import CLEARED
from quota_ops.model.plans.plan import is_cut, is_raise, is_small
from quota_ops.model.plans.policy import SHARE_COUNTS_FROM, DriftPolicy, GuardThresholds, Policy
from quota_ops.model.plans.strict_policy import (
    APPLIED,
    APPLIED_OR_MERGED,
    Grounds,
    combine_strictly,
)
from quota_ops.model.quotas.difference import WRITES, Action, Difference, Kind
from quota_ops.model.quotas.owners import OwnerChange, OwnerIndex
from quota_ops.model.quotas.quota import QUOTA_KEYS, format_limit, limits_a_client
from quota_ops.model.quotas.rows import Key
from quota_ops.model.text import counted, name_first
from quota_ops.model.usage.throttling import Throttling

Findings = Iterator[GuardFinding]
Risks = Mapping[Key, Risk]
"""What the writes do to the limits of clients at worst; none for a key that Kafka does not have."""
Judged = tuple[Difference, Risk | None]
"""A write and its risk."""


class EarlierRuns(Struct, frozen=True):
    """The ledger's facts of earlier runs: managed rows per owner, the last policy, the commits."""

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
    owner_changes: tuple[OwnerChange, ...] = ()
    """The managed quotas that get a different owner than in the ledger; in a review, than the merge
    base has."""
    lacks: str | None = None
    """The commit that was applied last, if that of this run does not contain it."""
    checked_out: str | None = None
    """The commit that lacks it, if that is not the one of this run."""

    @property
    def policies(self) -> tuple[Policy, ...]:
        """The policies whose stricter values count beside those of the plan's own policy."""
        return tuple(policy for policy in (*(self.others or ()), self.policy) if policy is not None)

    @property
    def strict_policy(self) -> Policy | None:
        """The stricter of all these policies, field by field; None if there are none."""
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
    risks: Risks,
    clients: InventoryEffects | None = None,
    throttling: Throttling | None = None,
) -> tuple[GuardFinding, ...]:
    """Return the guards that block a plan, by the strictest of its policy and the earlier ones.

    `risks` are the risks of the writes for classes of clients, `clients` the effects on the clients
    of the inventory, `throttling` what the cuts would have done to recent use; None if no guard
    compares it. The message of a guard that blocks only by an earlier policy mentions it.

    A row whose temporary value ended was judged when that value was planned, with what it returns
    to. No guard about a row's value blocks it.
    """
    grounds = Grounds(policy, earlier.policies, throttling, earlier.source)
    new = [row for row in writes if not row.is_return]
    clears = [row for row in new if row.action is Action.CLEAR]
    return (
        *_removals(clears, grounds, earlier),
        *_owners(clears, new, earlier),
        *_judge_rows(writes, risks, grounds),
        *_given_away(earlier.owner_changes, policy),
        *_clients(clients, risks, grounds),
        *_throttling(writes, grounds),
        *_commits_and_policy(writes, policy, commit, earlier),
        *_old_ledger(clears, earlier),
        *_lost_policy(writes, commit, earlier),
        *_empty(clears, desired),
    )


def _empty(clears: Sequence[Difference], desired: int) -> Findings:
    if clears and not desired:
        yield make_finding(Guard.EMPTY_DESIRED, "Git declares no quota", clears)


def _removals(clears: Sequence[Difference], grounds: Grounds, earlier: EarlierRuns) -> Findings:
    most, removed = grounds.find_threshold("removals"), len(clears)
    share = 100 * removed / earlier.owned if earlier.owned else 0.0
    least = grounds.find_threshold("removals_share")
    if removed > most.value:
        words = f"{counted(removed, 'removal')}, more than {most.value:,}{most.source}"
        yield make_finding(Guard.REMOVALS, words, clears, share)
    elif removed >= SHARE_COUNTS_FROM and share > least.value:
        managed = counted(earlier.owned, "managed row")
        words = f"{removed:,} of {managed} would be removed, more than "
        if other := sum(row.kind in _NOT_OWNED for row in clears):
            rows = f"{counted(removed, 'row')} ({other:,} not managed)"
            words = f"{rows} would be removed beside {managed}, more than "
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


def _given_away(changes: Sequence[OwnerChange], policy: Policy) -> Findings:
    """Yield the finding about quotas that another owner takes over."""
    owners = OwnerIndex(policy.owners)
    foreign = [change for change in changes if change.needs_approval(owners)]
    if foreign:
        words = "; ".join(change.text.removesuffix(".") for change in foreign)
        what = [[change.before, change.after, *change.entities] for change in foreign]
        yield make_finding(Guard.FOREIGN_OWNER, words, what=what)


def _commits_and_policy(
    writes: Sequence[Difference], policy: Policy, commit: str | None, earlier: EarlierRuns
) -> Findings:
    now = policy.decisive_fields()
    before = now if earlier.policy is None else earlier.policy.decisive_fields()
    changed = sorted(name for name in now if now[name] != before[name])
    messages, values = [], [[name, before[name], now[name]] for name in changed]
    if changed:
        since = " since it was applied" if earlier.others is None else ""
        messages.append(f"cluster.yaml changed{since}: {', '.join(changed)}")
    names = sorted({of_then.cluster for of_then in earlier.policies} - {policy.cluster})
    if names and writes:
        messages.append(
            f"the runs before were of the folder {', '.join(names)}: if it still declares quotas "
            "of this cluster, each folder clears those of the other"
        )
        values.append(["cluster", names, policy.cluster])
    if messages:
        yield make_finding(Guard.POLICY_CHANGED, "; ".join(messages), what=values)
    # A value that was last verified is not from before the later commit; an older ledger may be.
    is_old = earlier.old_ledger is not None
    goes_back = any(is_old or not row.restores for row in writes)
    if goes_back and commit in earlier.commits[:-1]:
        last = earlier.commits[-1]
        message = f"{named(str(commit))} was applied before, and {short(last)} after it"
        yield make_finding(Guard.WENT_BACK, message, what=last)
    elif goes_back and earlier.lacks is not None:
        own = named(str(earlier.checked_out or commit))
        what = f"{own} does not contain {short(earlier.lacks)}"
        message = f"{what}, which was applied last"
        yield make_finding(Guard.WENT_BACK, message, what=earlier.lacks)
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


def _lost_policy(
    writes: Sequence[Difference], commit: str | None, earlier: EarlierRuns
) -> Findings:
    """Yield the finding about a rollback, which reads no cluster.yaml, without the last policy."""
    is_rollback = commit is not None and not is_git(commit)
    if is_rollback and earlier.policy is None and earlier.old_ledger is not None:
        yield find_unknown_policy(writes, earlier.old_ledger)


def find_unknown_policy(writes: Sequence[Difference], trouble: str) -> GuardFinding:
    """Return the finding that the last applied policy of these writes is unknown, and why."""
    words = "it is unknown what the last applied cluster.yaml protects, and its thresholds"
    return make_finding(Guard.UNPROTECTED, f"{words}: {trouble}", writes)


def _cuts(row: Difference, risk: Risk | None, guards: GuardThresholds) -> bool:
    return is_cut(row, guards.cut_share) or (risk is not None and risk.cut > guards.cut_share)


def _raises(row: Difference, risk: Risk | None, guards: GuardThresholds) -> bool:
    return is_raise(row, guards.raise_factor) or (
        risk is not None and risk.rise > guards.raise_factor
    )


def _leaves_unlimited(row: Difference, risk: Risk | None, _guards: GuardThresholds) -> bool:
    if risk is not None and risk.unlimited:
        return True
    is_limited = row.before is not None and limits_a_client(row.key, row.before)
    return is_limited and row.target is not None and not limits_a_client(row.key, row.target)


def _name_return(found: Sequence[Judged]) -> str:
    """Return what the first temporary value of some rows returns to, which counts too."""
    row = next((row for row, _ in found if row.returns_to is not None), None)
    if row is None:
        return ""
    then = format_limit(row.key, row.returns_to or None)
    return f" (now, or when a temporary value ends: {row.entity} {row.key} returns to {then})"


def judge_alteration(
    writes: Sequence[Difference], policy: Policy, applied: Policy | None, risks: Risks
) -> tuple[GuardFinding, ...]:
    """Return the guards that block a one-off change, by what its rows do."""
    if applied is not None:  # a person clears what they type, whatever runs clear
        applied = replace(applied, clear_unmanaged=True)
    earlier = EarlierRuns(0, {}, applied, ())
    found = judge(writes, policy=policy, commit=None, desired=1, earlier=earlier, risks=risks)
    return tuple(finding for finding in found if finding.guard in OF_ALTER)


def _describe_cuts(found: Sequence[Judged], grounds: Grounds) -> str:
    share = grounds.find_threshold("cut_share")
    return f"{_name(found)} would fall by more than {share.value:g} %{share.source}"


def _describe_raises(found: Sequence[Judged], grounds: Grounds) -> str:
    factor = grounds.find_threshold("raise_factor")
    is_evident = is_raise(found[0][0], factor.value)
    rises = "rise" if is_evident else "raise the limit of some clients"
    return f"{_name(found)} would {rises} to more than {factor.value:,.12g} times{factor.source}"


def _describe_foreign_rows(found: Sequence[Judged], _grounds: Grounds) -> str:
    """Return a sentence for each pair of owners."""
    owners: dict[tuple[str | None, str | None], list[Difference]] = {}
    for row, risk in found:
        owners.setdefault((row.owner, risk.foreign if risk else None), []).append(row)
    return "; ".join(
        f"{name_rows(rows)} {f'of {own}' if own else 'of no owner'} would change limits that "
        f"{other} set for its clients"
        for (own, other), rows in owners.items()
    )


def _describe_small(found: Sequence[Judged], grounds: Grounds) -> str:
    """Return a sentence for the limits of each unit, starting with the unit of the first row."""
    by_threshold: dict[str, list[Difference]] = {}
    for row, _ in found:
        by_threshold.setdefault(str(QUOTA_KEYS[row.key].small_guard), []).append(row)
    sentences = []
    for name, rows in by_threshold.items():
        least = grounds.find_threshold(name)
        below = f"below {format_limit(rows[0].key, least.value)}{least.source}"
        sentences.append(f"{name_rows(rows)} would be set {below}")
    return ", and ".join(sentences)


def _describe_late(found: Sequence[Judged]) -> str:
    return f"{_name(found)}: the write of run {found[0][0].run} seems to have arrived late"


def _describe_returned(found: Sequence[Judged], _grounds: Grounds) -> str:
    first = found[0][0]
    did = "cleared" if first.memory == CLEARED else "wrote late"
    return f"{_name(found)}: not in Git, and on the cluster with a value that run {first.run} {did}"


def _describe_unprotected(found: Sequence[Judged], grounds: Grounds) -> str:
    return f"{_name(found)} would change, although excluded by the {grounds.source} policy"


def _clients(clients: InventoryEffects | None, risks: Risks, grounds: Grounds) -> Findings:
    """Yield the finding of the guard that counts the clients of the inventory that lose.

    If they cannot be counted, it blocks what may cut or limit a client.
    """
    if clients is None:
        return
    if clients.trouble:
        if any(risk.loses for risk in risks.values()):
            words = f"the clients that lose cannot be counted: {clients.trouble}"
            yield make_finding(Guard.BLAST_RADIUS, words, what="clients")
        return
    if not clients.total.losing:
        return
    total, most = clients.total, grounds.find_threshold("blast_radius")
    least = grounds.find_threshold("blast_radius_share")
    share = 100 * total.losing / total.clients
    if total.losing > most.value:
        lost = f"{counted(total.losing, 'client')} would or may get less, more than "
        words = f"{lost}{most.value:,}{most.source}"
        yield make_finding(Guard.BLAST_RADIUS, words, share=share, what="clients")
    elif total.losing >= SHARE_COUNTS_FROM and share > least.value:
        lost = f"{total.losing:,} of {counted(total.clients, 'client')} would or may get less"
        words = f"{lost}, more than {least.value:g} %{least.source}"
        yield make_finding(Guard.BLAST_RADIUS, words, share=share, what="clients")


def _throttling(writes: Sequence[Difference], grounds: Grounds) -> Findings:
    """Yield the finding of the guard that compares cuts with recent use."""
    most, found = grounds.find_threshold("would_throttle"), grounds.throttling
    if found is None:
        return
    rows = [row for row in writes if is_blocked_by(Guard.WOULD_THROTTLE, row, grounds)]
    if not rows:
        return
    cuts = [grounds.cuts[row.id] for row in rows]
    longest = sorted(rows, key=lambda row: -grounds.cuts[row.id].longest)
    throttled = [row for row in longest if grounds.cuts[row.id].longest > 60 * most.value]
    unknown = [row for row in rows if grounds.cuts[row.id].why or row not in throttled]
    worst = max(cuts, key=lambda cut: cut.longest)
    words = []
    if throttled:
        minutes = counted(ceil(worst.longest / 60), "minute")
        allowed = f"more than {counted(most.value, 'minute')}{most.source}"
        longer = "" if all(grounds.cuts[row.id].is_bounded for row in throttled) else " or longer"
        words.append(
            f"{name_rows(throttled)} would have throttled clients for up to {minutes}{longer} in "
            f"the last {found.days} days, {allowed}"
        )
    if unknown:
        why = found.trouble or grounds.cuts[unknown[0].id].doubt
        words.append(f"whom {name_rows(unknown)} would have throttled is not known: {why}")
    share = ceil(worst.longest / 864 / found.days)
    yield make_finding(Guard.WOULD_THROTTLE, "; ".join(words), rows, share)


def name_rows(rows: Iterable[Difference]) -> str:
    """Format the first row, and the number of the others."""
    return name_first(f"{row.entity} {row.key}" for row in rows)


RowTest = Callable[[Difference, Risk | None, Grounds], bool]


class Rule(NamedTuple):
    """Which writes a guard blocks and, if it judges each by itself, its message about them."""

    finds: RowTest
    describe: Callable[[Sequence[Judged], Grounds], str] | None = None
    kind: Kind | None = None
    """The kind of all these writes; None if they may be of any kind."""


def _of_limits(
    finds: Callable[[Difference, Risk | None, GuardThresholds], bool],
    describe: Callable[[Sequence[Judged], Grounds], str],
) -> Rule:
    """Return the rule of a guard that compares limits before and after.

    A row that is new or removed changes the limits of clients to which another quota applies before
    or after it, as its risk shows.
    """
    return Rule(
        lambda row, risk, grounds: finds(row, risk, grounds.strict.guards) and not row.is_agreed,
        lambda found, grounds: f"{describe(found, grounds)}{_name_return(found)}",
    )


def _is_new(row: Difference, _risk: Risk | None, _grounds: Grounds) -> bool:
    return not row.is_return


def _of_kind(kind: Kind, words: str) -> Rule:
    return Rule(_is_new, lambda found, _grounds: f"{_name(found)} {words}", kind)


def _of_drift(kind: Kind, describe: Callable[[Sequence[Judged]], str]) -> Rule:
    """Return the rule of a guard that blocks only if the policy does not repair all drift."""
    return Rule(
        lambda row, _risk, grounds: (
            not row.is_return and grounds.strict.drift is not DriftPolicy.REPAIR
        ),
        lambda found, grounds: f"{describe(found)}, and {grounds.drift_words}",
        kind,
    )


def _is_clear(row: Difference, _risk: Risk | None, _grounds: Grounds) -> bool:
    return row.action is Action.CLEAR and not row.is_return


def _may_throttle(row: Difference, _risk: Risk | None, grounds: Grounds) -> bool:
    """Return whether a cut would have throttled clients for too long.

    A cut also blocks if its use is unknown, or not seen for long enough, because nobody knows then
    whom it would throttle.
    """
    most, cut = grounds.strict.guards.would_throttle, grounds.cuts.get(row.id)
    if most is None or cut is None or row.is_agreed:
        return False
    return cut.longest > 60 * most or cut.doubt is not None


def _name(found: Sequence[Judged]) -> str:
    return name_rows(row for row, _ in found)


_RULES: Mapping[str, Rule] = {
    Guard.REMOVALS: Rule(_is_clear),
    Guard.OWNER_REMOVED: Rule(_is_clear),
    Guard.OLD_LEDGER: Rule(_is_clear),
    Guard.EMPTY_DESIRED: Rule(_is_clear),
    Guard.CUT: _of_limits(_cuts, _describe_cuts),
    Guard.RAISE: _of_limits(_raises, _describe_raises),
    Guard.UNLIMITED: _of_limits(
        _leaves_unlimited, lambda found, _: f"{_name(found)} would lift the limit of clients"
    ),
    Guard.SMALL_LIMIT: _of_limits(
        lambda row, _risk, guards: is_small(row, guards), _describe_small
    ),
    Guard.FOREIGN_OWNER: _of_limits(
        lambda _row, risk, _guards: risk is not None and risk.foreign is not None,
        _describe_foreign_rows,
    ),
    Guard.TAKEOVER: _of_kind(Kind.TAKEOVER, "unmanaged, with another value on the cluster"),
    Guard.CONFLICT: Rule(
        _is_new,
        lambda found, _: (
            f"Git and the cluster differ from the last verified value of {_name(found)}"
        ),
        Kind.CONFLICT,
    ),
    Guard.CHANGED_SINCE: _of_kind(
        Kind.CHANGED_SINCE, "removed from Git, then changed on the cluster"
    ),
    Guard.DRIFT: _of_drift(Kind.DRIFTED, lambda found: f"{_name(found)} changed on the cluster"),
    Guard.LATE_WRITE: _of_drift(Kind.LATE_WRITE, _describe_late),
    Guard.RETURNED: Rule(_is_new, _describe_returned, Kind.RETURNED),
    Guard.UNPROTECTED: Rule(
        lambda row, _risk, grounds: grounds.is_unprotected(row), _describe_unprotected
    ),
    Guard.DEFAULT_TOUCHED: _of_limits(
        lambda row, _risk, _guards: row.has_default,
        lambda found, _: f"{_name(found)} would change; a default applies to many clients",
    ),
    Guard.ABOVE_CEILING: Rule(
        lambda row, _risk, grounds: exceeds_ceiling(row, grounds.strict.ceilings)
    ),
    Guard.WOULD_THROTTLE: Rule(_may_throttle),
}
"""The rules of the guards that block single rows. Any other guard judges the plan as a whole."""


def _judge_rows(writes: Sequence[Difference], risks: Risks, grounds: Grounds) -> Findings:
    """Yield the findings of the guards that judge each row by itself."""
    judged = [(row, risks.get(row.id)) for row in writes]
    by_kind = defaultdict[Kind | None, list[Judged]](list, {None: judged})
    for row, risk in judged:
        by_kind[row.kind].append((row, risk))
    for guard, rule in _RULES.items():
        if rule.describe is None:
            continue
        some = by_kind[rule.kind]
        if found := [(row, risk) for row, risk in some if rule.finds(row, risk, grounds)]:
            yield make_finding(guard, rule.describe(found, grounds), [row for row, _ in found])


def is_blocked_by(guard: str, row: Difference, grounds: Grounds, risk: Risk | None = None) -> bool:
    """Return whether a guard blocks because of this row; some guards judge the whole plan.

    `grounds` are what the guards compared with. `risk` is the risk of the row, None if its values
    show it.
    """
    rule = _RULES.get(guard)
    if rule is None or row.action not in WRITES or rule.kind not in (None, row.kind):
        return False
    return rule.finds(row, risk, grounds)
