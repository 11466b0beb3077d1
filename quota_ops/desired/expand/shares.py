"""Divide a budget among members by weight: exactly, and never more than the budget."""

from collections.abc import Mapping, Sequence
from fractions import Fraction


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
