"""The limits that an owner may declare alone, and the guard that compares them."""

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from quota_ops.model.plans.capacity import Amounts
from quota_ops.model.plans.guard import Guard, GuardFinding, make_finding
from quota_ops.model.quotas.difference import Action, Difference
from quota_ops.model.quotas.quota import QUOTA_KEYS, format_limit
from quota_ops.model.text import counted

Totals = Mapping[tuple[str | None, str], float]
"""The sum of all declared limits by owner and key, now or when temporary values have ended."""


class Ceiling(Struct, frozen=True):
    """The highest limit of one quota of an owner, and of all its quotas together, by key."""

    owner: str
    each: Amounts = ()
    total: Amounts = ()


def exceeds_ceiling(row: Difference, ceilings: Sequence[Ceiling]) -> bool:
    """Return whether a row is set above the ceiling of its owner."""
    if row.action is not Action.SET or row.target is None or row.is_return:
        return False
    most = index_ceilings(ceilings).get((row.owner, row.key))
    return most is not None and _find_highest(row) > most


def _find_highest(row: Difference) -> float:
    """Return the value that a row sets, or the one that this returns to: no guard judges that."""
    return max(row.target or 0.0, row.returns_to or 0.0)


def combine_ceilings(ceilings: Sequence[Ceiling], others: Sequence[Ceiling]) -> tuple[Ceiling, ...]:
    """Return the lower ceiling of both for each owner and key."""
    both = (*ceilings, *others)
    return tuple(
        Ceiling(owner, *(_find_least(both, owner, name) for name in ("each", "total")))
        for owner in sorted({ceiling.owner for ceiling in both})
    )


def judge_ceilings(
    writes: Sequence[Difference], totals: Totals, ceilings: Sequence[Ceiling]
) -> Iterator[GuardFinding]:
    """Yield the findings about rows above a ceiling.

    An owner that is above its total for other reasons may still lower its limits.
    """
    new = [row for row in writes if row.action is Action.SET and not row.is_return]
    each = index_ceilings(ceilings)
    above = [row for row in new if _find_highest(row) > each.get((row.owner, row.key), _NO_CEILING)]
    if above:
        first = above[0]
        words = (
            f"{first.entity} {first.key} would be {format_limit(first.key, _find_highest(first))}, "
            "above"
        )
        words += f" the {format_limit(first.key, each[first.owner, first.key])} that {first.owner}"
        words += " may declare" + (f", and {counted(len(above) - 1, 'more')}" if above[1:] else "")
        yield make_finding(Guard.ABOVE_CEILING, words, above)
    for (owner, key), most in sorted(index_ceilings(ceilings, "total").items()):
        raised = [row for row in new if (row.owner, row.key) == (owner, key) and _is_raised(row)]
        total = min(totals.get((owner, key), 0.0), QUOTA_KEYS[key].unlimited)
        if raised and total > most:
            words = f"{owner} would have {format_limit(key, total)} of {key} together, above its"
            words += f" {format_limit(key, most)}"
            what = [owner, key, sorted(row.entity for row in raised)]
            yield make_finding(Guard.ABOVE_CEILING, words, share=100 * total / most, what=what)


_NO_CEILING = float("inf")


def _is_raised(row: Difference) -> bool:
    return row.before is None or _find_highest(row) > row.before


def _find_least(ceilings: Sequence[Ceiling], owner: str, field: str) -> Amounts:
    least: dict[str, float] = {}
    for ceiling in ceilings:
        for key, value in getattr(ceiling, field) if ceiling.owner == owner else ():
            least[key] = min(value, least.get(key, value))
    return tuple(sorted(least.items()))


def index_ceilings(
    ceilings: Sequence[Ceiling], field: str = "each"
) -> dict[tuple[str | None, str], float]:
    """Return the highest limit of an owner and key: of one quota, or in total."""
    return {
        (ceiling.owner, key): value
        for ceiling in ceilings
        for key, value in getattr(ceiling, field)
    }
