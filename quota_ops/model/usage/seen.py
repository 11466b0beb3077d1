"""When brokers were seen, and for how long all of them were."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import pairwise

from quota_ops.model.clusters.cluster_facts import BrokerFacts
from quota_ops.model.clusters.scraped_brokers import ScrapedBrokers, match_brokers

Run = tuple[int, int]
"""A time in which a broker was seen: its start and its end, in seconds."""
SeenBrokers = Mapping[str, Sequence[Run]]
"""The runs of each scraped broker by its label, sorted; no two of a broker overlap."""


def join_seen(times: Iterable[SeenBrokers]) -> dict[str, list[Run]]:
    """Return the runs of times that are the same, or do not overlap."""
    joined: dict[str, set[Run]] = defaultdict(set)
    for seen in times:
        for broker, runs in seen.items():
            joined[broker].update(runs)
    return {broker: sorted(runs) for broker, runs in sorted(joined.items())}


def count_each(seen: SeenBrokers) -> dict[str, int]:
    """Return for how many seconds each broker was seen."""
    return {broker: sum(end - start for start, end in runs) for broker, runs in seen.items()}


def count_together(seen: SeenBrokers, brokers: Collection[BrokerFacts] | None) -> int:
    """Return for how many seconds all registered brokers were seen at the same time.

    It is 0 if one of them was not scraped, or may be none of those that were. If nobody knows which
    are registered (None), it is the time in which all scraped ones were.
    """
    matched = match_brokers(seen, brokers or ()) or ScrapedBrokers()
    own = [runs for label, runs in seen.items() if label not in matched.others]
    if matched.absent or (brokers is not None and len(own) != len(brokers)):
        return 0
    edges = sorted(edge for runs in own for start, end in runs for edge in ((start, 1), (end, -1)))
    up = seconds = 0
    for (at, change), (until, _) in pairwise(edges):
        up += change
        seconds += until - at if up == len(own) else 0
    return seconds
