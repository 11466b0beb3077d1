"""Use and delays, computed from samples in plain loops: what the SQL has to find."""

from collections.abc import Mapping
from math import ceil
from typing import NamedTuple

STEP = 60


class Sample(NamedTuple):
    """A sample of a series on a broker; `minute` is the time."""

    minute: int
    broker: str
    user: str | None
    client_id: str | None
    value: float


def find_values(
    samples: list[Sample], seen: set[tuple[str, int]], broker: str, name: tuple[str | None, ...]
) -> list[float]:
    """Return the use of a series in each minute in which the broker was seen, in order."""
    values = find_counted(samples, seen, broker, name)
    return [values.get(minute, 0.0) for known, minute in sorted(seen) if known == broker]


def find_counted(
    samples: list[Sample], seen: set[tuple[str, int]], broker: str, name: tuple[str | None, ...]
) -> dict[int, float]:
    """Return the use of a series in each minute in which the broker counted it, and was seen."""
    return {
        sample.minute: sample.value
        for sample in samples
        if sample.broker == broker
        and (sample.user, sample.client_id) == name
        and (broker, sample.minute) in seen
    }


def find_quantile(values: list[float], percent: int) -> float:
    """Return the smallest value that was not exceeded in this percentage of the time."""
    return sorted(values)[max(ceil(percent * len(values) / 100), 1) - 1]


def simulate(values: Mapping[int, float], limit: float) -> tuple[float, int, float]:
    """Return for how many seconds a limit throttles at least and at most, and the longest delay.

    `values` is the use in each minute in which the broker was seen, in order.
    """
    delayed, backlog, longest = 0, 0.0, 0.0
    for value in values.values():
        backlog = max(0.0, backlog + (value - limit) * STEP)
        delayed += STEP * (backlog > 0)
        longest = max(longest, backlog / limit)
    above = {minute: value for minute, value in values.items() if value > limit}
    later = STEP * sum(minute - 1 in above for minute in above)
    muted = sum(STEP * (value - limit) / limit for value in above.values())
    return min(STEP * len(above), max(later, muted)), delayed, longest
