"""Use and delays, computed from samples in plain loops: what the SQL has to find."""

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


def simulate(values: list[float], limit: float) -> tuple[int, int, float]:
    """Return for how many seconds the use was above a limit, and was delayed, and the longest."""
    above = delayed = 0
    backlog = longest = 0.0
    for value in values:
        backlog = max(0.0, backlog + (value - limit) * STEP)
        above += STEP * (value > limit)
        delayed += STEP * (backlog > 0)
        longest = max(longest, backlog / limit)
    return above, delayed, longest
