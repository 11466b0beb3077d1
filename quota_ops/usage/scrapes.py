"""The time in which brokers were seen, from their scrapes."""

from collections import defaultdict
from itertools import pairwise
from math import inf

import pyarrow as pa

from quota_ops.model.usage.seen import Run
from quota_ops.model.usage.series import Time

_JITTER = 0.01
"""By what share of the step scrapes may be late without a gap."""


def find_seen(scrapes: pa.Table, step: int, time: Time) -> dict[str, list[Run]]:
    """Return when each broker was seen in a time, in seconds since 1970, by SCRAPES of it.

    A scrape that succeeded stands for the time until the next one, `step` seconds at most. Before
    the first one, so much of the time may have no scrape.
    """
    first, last = (moment.timestamp() for moment in time)
    of_broker: dict[str, list[tuple[float, bool]]] = defaultdict(list)
    micros = scrapes["time"].cast(pa.int64()).to_pylist()
    rows = zip(micros, scrapes["broker"].to_pylist(), scrapes["up"].to_pylist(), strict=True)
    for at, broker, is_up in rows:
        of_broker[broker].append((at / 1e6, is_up))
    seen: dict[str, list[Run]] = {}
    for broker, found in sorted(of_broker.items()):
        found.sort()
        runs: list[tuple[float, float]] = []
        for number, ((at, is_up), (until, _)) in enumerate(pairwise([*found, (inf, False)])):
            if is_up:
                start = first if number == 0 and at - first <= step else at
                if runs and at - runs[-1][1] <= _JITTER * step:
                    start = runs.pop()[0]
                runs.append((start, min(until, at + step, last)))
        seen[broker] = [(round(start), round(end)) for start, end in runs]
    return seen
