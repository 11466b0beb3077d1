"""The quotas of the members of a group: a share of the budget for each."""

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction

from quota_ops.desired.expand.overrides import apply_terms
from quota_ops.desired.groups import Group
from quota_ops.desired.limits import Derivation, Limit
from quota_ops.desired.quotas_file import Quota, QuotasFile
from quota_ops.desired.yaml.source import Source
from quota_ops.model.quotas.quota import QUOTA_KEYS, format_limit

_HUNDREDTHS = 100
"""Shares of keys that need not be whole have two decimals."""


def expand_groups(file: QuotasFile, at: str) -> Iterator[Quota]:
    """Yield a quota for each member of the groups of a file at a time.

    Adds a problem for a budget that gives some member no share, or less than the minimum.
    """
    for group in file.groups:
        budgets = {limit.key: limit for limit in group.budget}
        if group.terms is None:
            limits: tuple[Limit, ...] = group.budget
        else:
            limits = apply_terms(group.terms, budgets, at, file.source.name)
        shares = [_share(file.source, group, limit) for limit in limits]
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


def _share(source: Source, group: Group, budget: Limit) -> dict[str, Limit]:
    """Return the share of each member in a budget by entity; none, after adding a problem."""
    amounts = _divide(source, group, budget, budget.value)
    derivation = budget.derivation or Derivation("")
    returns = derivation.returns_to
    later = _divide(source, group, budget, returns) if returns else {}
    total = sum(member.weight for member in group.members)
    least = _find_minimum(group, budget.key)
    shares = {}
    for member in group.members:
        name = member.entity.text
        if name not in amounts:
            return {}
        text = f"group {group.name}, {member.weight} of {total} of "
        text += budget.words
        text += f", at least {format_limit(budget.key, least)} each" if least else ""
        text += f", {derivation.text} for the group" if derivation.text else ""
        derived = derivation._replace(text=text, returns_to=later.get(name, returns))
        shares[name] = budget._replace(value=amounts[name], text="", derivation=derived)
    return shares


def _divide(source: Source, group: Group, budget: Limit, value: float) -> dict[str, float]:
    key = QUOTA_KEYS[budget.key]
    if value == key.unlimited:
        message = f"The budget {budget.key} is unlimited, so it cannot be divided."
        _refuse(source, budget, message, "Write a number, or quotas of their own for the members.")
        return {}
    unit = 1 if key.whole else _HUNDREDTHS
    least = _find_minimum(group, budget.key)
    weights = {member.entity.text: member.weight for member in group.members}
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
    line, column, length = budget.span
    source.refuse_at(line, column, message, remedy, length=length)


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
