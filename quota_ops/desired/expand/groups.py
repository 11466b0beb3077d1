"""The quotas of the members of a group: a share of the budget for each."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction

from quota_ops.desired.expand.overrides import apply_terms
from quota_ops.desired.quotas_file import Derivation, Group, Limit, Member, Quota, QuotasFile
from quota_ops.desired.yaml.source import Source
from quota_ops.model.quotas.entity import CLIENT_ID, USER
from quota_ops.model.quotas.quota import QUOTA_KEYS, format_limit
from quota_ops.model.text import counted
from quota_ops.model.usage.recorded import GroupUse
from quota_ops.model.usage.series import SeriesNames

_HUNDREDTHS = 100
"""Shares of keys that need not be whole have two decimals."""
_THOUSANDTHS = 1000
"""The sum of weights that follow use, about: less than one of them changes no share."""
_ENOUGH_DAYS = 7
"""How many recorded days the use of a group needs."""


def list_used_names(files: Iterable[QuotasFile]) -> set[SeriesNames]:
    """Return the names of the members whose shares follow their use."""
    groups = (group for file in files for group in file.groups if group.follows_use)
    return {_names(member) for group in groups for member in group.members}


def expand_groups(file: QuotasFile, at: str, use: GroupUse | None) -> Iterator[Quota]:
    """Yield a quota for each member of the groups of a file at a time.

    `use` is the recorded use of the members; None if it was not read.

    Adds a problem for a budget that gives some member no share, or less than the minimum.
    """
    for group in file.groups:
        budgets = {limit.key: limit for limit in group.budget}
        if group.terms is None:
            limits: tuple[Limit, ...] = group.budget
        else:
            limits = apply_terms(group.terms, budgets, at, file.source.name)
        shares = [_share(file.source, group, limit, use) for limit in limits]
        for member in group.members:
            name = member.entity.text
            yield Quota(
                file.source,
                file.owner,
                member.span,
                member.entity,
                tuple(share[name] for share in shares if name in share),
                group.reason,
                (),
                None,
                None,
                group.name,
            )


def _share(source: Source, group: Group, budget: Limit, use: GroupUse | None) -> dict[str, Limit]:
    """Return the share of each member in a budget by entity; none, after adding a problem."""
    weights = weigh_by_use(
        {member.entity.text: member.weight for member in group.members},
        _find_used(group, budget.key, use),
    )
    amounts = _divide(source, group, budget, budget.value, weights)
    derivation = budget.derivation or Derivation("")
    returns = derivation.returns_to
    later = _divide(source, group, budget, returns, weights) if returns else {}
    least = _find_minimum(group, budget.key)
    shares = {}
    for member in group.members:
        name = member.entity.text
        if name not in amounts:
            return {}
        text = f"group {group.name}, {_explain_share(group, member, budget, use)}"
        text += f", at least {format_limit(budget.key, least)} each" if least else ""
        text += f", {derivation.text} for the group" if derivation.text else ""
        derived = derivation._replace(text=text, returns_to=later.get(name, returns))
        shares[name] = budget._replace(value=amounts[name], text="", derivation=derived)
    return shares


def _names(member: Member) -> SeriesNames:
    parts = member.entity.as_dict()
    return SeriesNames(parts.get(USER), parts.get(CLIENT_ID))


def _find_used(group: Group, key: str, use: GroupUse | None) -> dict[str, float]:
    """Return the use of the members whose use is known; none if it has no effect on shares."""
    if use is None or not group.follows_use or use.days < _ENOUGH_DAYS:
        return {}
    found = {member.entity.text: use.rates.get((key, _names(member))) for member in group.members}
    return {name: rate for name, rate in found.items() if rate is not None}


def weigh_by_use(weights: Mapping[str, int], used: Mapping[str, float]) -> Mapping[str, int]:
    """Return the weight of each member: half as declared, half by use, in thousandths of all.

    A member whose use is unknown has the weight that is declared, and so have all without any use.
    """
    if not (total_use := sum(used.values())):
        return weights
    known, total = sum(weights[name] for name in used), sum(weights.values())
    by_use = {name: known * rate / total_use for name, rate in used.items()}
    return {
        name: max(1, round(_THOUSANDTHS * (weight + by_use.get(name, weight)) / 2 / total))
        for name, weight in weights.items()
    }


def _explain_share(group: Group, member: Member, budget: Limit, use: GroupUse | None) -> str:
    """Return how a member's share is divided, and why use does not count if it should."""
    weight = f"{member.weight} of {sum(each.weight for each in group.members)}"
    text = f"{weight} of {budget.words}"
    if not group.follows_use:
        return text
    if use is None:
        return f"{text} by weight; a plan divides half of it by use"
    if sum(_find_used(group, budget.key, use).values()):
        days = f"{counted(use.days, 'day')} before {use.until}"
        return f"{budget.words}: half by weight ({weight}), half by use on {days}"
    if use.days < _ENOUGH_DAYS:
        days = f"{counted(use.days, 'day')} before {use.until}"
        return f"{text} by weight: use is recorded on {days}, {_ENOUGH_DAYS} are needed"
    return f"{text} by weight: no use of a member is recorded before {use.until}"


def _divide(
    source: Source, group: Group, budget: Limit, value: float, weights: Mapping[str, int]
) -> dict[str, float]:
    key = QUOTA_KEYS[budget.key]
    if value == key.unlimited:
        message = f"The budget {budget.key} is unlimited, so it cannot be divided."
        _refuse(source, budget, message, "Write a number, or quotas of their own for the members.")
        return {}
    unit = 1 if key.whole else _HUNDREDTHS
    least = _find_minimum(group, budget.key)
    try:
        shares = split_budget(int(Decimal(value) * unit), weights, int(Decimal(least) * unit))
    except NoShareError as error:
        message = f"The budget {format_limit(budget.key, value)} {error}."
        _refuse(source, budget, message, "Raise the budget, or remove members.")
        return {}
    return {name: float(Decimal(share) / unit) for name, share in shares.items()}


def _find_minimum(group: Group, key: str) -> float:
    return next((limit.value for limit in group.minimum if limit.key == key), 0.0)


def _refuse(source: Source, budget: Limit, message: str, remedy: str) -> None:
    source.refuse_at(budget.span, message, remedy)


class NoShareError(ValueError):
    """A budget that cannot give every member a share; the text continues `The budget`."""


def split_budget(budget: int, weights: Mapping[str, int], minimum: int = 0) -> dict[str, int]:
    """Return the share of each member; together they are the budget.

    Each has at least `minimum`; the others share the rest by weight. Shares are whole: what is
    left goes to the largest remainders, and among equal ones to the first names. So the order of
    the members has no effect. Raises NoShareError if a share would be 0 or the budget is less than
    the minima.
    """
    if minimum * len(weights) > budget:
        raise NoShareError("is less than the minima of its members")
    raised = _find_raised(budget, weights, minimum)
    rest = budget - minimum * len(raised)
    total = sum(weight for name, weight in weights.items() if name not in raised)
    exact = {
        name: Fraction(rest * weight, total)
        for name, weight in weights.items()
        if name not in raised
    }
    shares = dict.fromkeys(raised, minimum) | {name: int(share) for name, share in exact.items()}
    left = budget - sum(shares.values())
    for name in sorted(exact, key=lambda name: (shares[name] - exact[name], name))[:left]:
        shares[name] += 1
    if not all(shares.values()):
        raise NoShareError("is too small to give every member a share")
    return shares


def _find_raised(budget: int, weights: Mapping[str, int], minimum: int) -> frozenset[str]:
    """Return the members that get the minimum, because their weight would give them less."""
    raised: frozenset[str] = frozenset()
    while True:
        others: Sequence[str] = [name for name in weights if name not in raised]
        rest, total = budget - minimum * len(raised), sum(weights[name] for name in others)
        below = [name for name in others if rest * weights[name] < minimum * total]
        if not below:
            return raised
        raised |= frozenset(below)
