"""What clients used, beside the limits of that time."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from quota_ops.model.quotas.entity import Entity
from quota_ops.model.text import counted, floor_percent, plural

AT_LIMIT = 0.97
"""The share of a limit from which on a client is at it: throttling is not exact."""
SEEN = 0.99
"""The share of a time in which each broker has to be scraped to call a quota unused."""


def find_stretch(interval: float, step: float) -> float:
    """Return how many times the time between two scrapes is longer than `step`; 1 if it is not."""
    return interval / step if interval > 1.2 * step else 1.0


def explain_step(interval: float, step: int) -> str:
    """Return what a `step` below the time between two scrapes means, and the remedy."""
    return (
        f"Scraped every {interval:.0f} s, but step is {step} s, so at most "
        f"{floor_percent(step / interval)} of the time counts as seen: set step: {interval:.0f}s."
    )


def explain_others(scraped: int, registered: int) -> str:
    """Return what it means that more brokers were scraped than are registered."""
    return (
        f"{counted(scraped, 'broker')} {plural(scraped, 'was', 'were')} scraped and {registered:,} "
        "registered: match may select another cluster, whose use is counted here, or a broker "
        "got another value of the label that `broker` under `usage` names."
    )


class UseVerdict(StrEnum):
    """What is known about the use of a quota."""

    USED = "used"
    UNUSED = "unused"
    """Nobody used it in the whole time, and every broker was scraped all along."""
    NOT_SEEN = "no use seen"
    """No use was seen, but it cannot be excluded."""
    UNKNOWN = "unknown"
    """Nothing is measured, or not as its use: see the reason."""


class SeriesShare(NamedTuple):
    """The use of one series under a quota: the highest of any broker, in the unit of its key.

    If the limit changed, the percentiles are of the time with the limit to which the p95 was
    nearest. `share` is this p95 divided by that limit; None without a known limit.
    """

    user: str | None
    client_id: str | None
    broker: str
    """The broker of the highest p95."""
    median: float
    p95: float
    highest: float
    share: float | None
    limit: float | None
    """The limit that `share` compares with."""
    at_limit_least: float | None
    """For how many seconds the rate was at the limit at least, on the broker with the most."""
    at_limit: float | None
    """For how many seconds it was at most; None if the limit is not known."""
    throttled: bool
    """Whether this quota throttled it at all. If limits changed meanwhile, nobody knows which did:
    then `at_limit` is all of that time."""
    counted: float
    """For how many seconds `broker` has samples of it."""
    with_limit: float
    """In how many of these seconds `limit` was in force: the percentiles are of them."""


class QuotaUse(NamedTuple):
    """The use of a quota that a cluster stores, by the series that belonged to it."""

    entity: Entity
    key: str
    limit: float
    """The limit that was seen last."""
    owner: str | None
    verdict: UseVerdict
    reason: str | None
    """What cannot be known, and why; or what else explains the verdict."""
    clients: tuple[SeriesShare, ...]
    """The busiest first."""

    @property
    def busiest(self) -> SeriesShare | None:
        """The series that is nearest to the limit."""
        return self.clients[0] if self.clients else None


class UseOverview(NamedTuple):
    """The use of a cluster's quotas from `start` to `end`."""

    cluster: str
    start: datetime
    end: datetime
    scrape_interval: float
    """How many seconds pass between two scrapes."""
    step: int
    """How many seconds a scrape stands for at most, by `usage` of cluster.yaml."""
    coverage: Mapping[str, float]
    """The share of the time in which each broker was seen, by its label."""
    seen: float
    """The share of the time in which all registered brokers were seen."""
    registered_brokers: int | None
    """How many brokers are registered; None if no run has recorded it."""
    limits_known: float
    """The share of the time in which the limits are known."""
    last_look: datetime | None
    """When a run last saw the stored quotas."""
    quotas: Sequence[QuotaUse]
    without_limit: Mapping[str, int]
    """How many series had no limit, by key."""
    not_counted: tuple[str, ...]
    """Why parts of the history of limits could not be read."""
    recorded_days: int = 0
    """How many of the days were read from their digests, whose rates are wrong by up to 2.5 %."""
    measured_times: int = 0
    """How many times before, between and after these days were read from Prometheus."""

    without_names: tuple[str, ...] = ()
    """The keys of which some used series have no names: their rows may be of other clients."""
    absent_brokers: tuple[str, ...] = ()
    """The addresses of registered brokers that were not scraped, as far as labels show it."""
    other_brokers: tuple[str, ...] = ()
    """The labels of scraped brokers that are not registered, as far as labels show it."""
    without_series: Mapping[str, float] = {}
    """For how many seconds a broker was scraped and no client had a series, by key."""

    @property
    def seconds(self) -> float:
        """How long the time is."""
        return (self.end - self.start).total_seconds()

    @property
    def is_read(self) -> bool:
        """Whether any part of the time could be read, from a recorded day or from Prometheus."""
        return bool(self.recorded_days or self.measured_times)

    @property
    def has_others(self) -> bool:
        """Whether brokers were scraped that are not registered: use of others is counted."""
        registered = self.registered_brokers
        is_more = registered is not None and registered < len(self.coverage)
        return is_more or bool(self.other_brokers)


class KeyProbe(NamedTuple):
    """The series of a quota key that Prometheus has of the last hour."""

    key: str
    series: int
    """The series of this cluster."""
    unnamed: int
    """Those without the name of a user or a client id, which are of no use."""
    brokers: int
    """The brokers that have one."""
    elsewhere: int
    """The series of the metric without the labels of `match`."""
    is_exported: bool
    """Whether the source has a metric for the key."""


class UseProbe(NamedTuple):
    """The series of a cluster that Prometheus has."""

    up: Mapping[str, bool]
    """Whether the last scrape of each broker succeeded, by its label."""
    interval: float | None
    """How many seconds pass between two scrapes; None without scrapes in the last hour."""
    oldest: datetime | None
    """The day of the oldest scrape that was found."""
    keys: Sequence[KeyProbe]
    presets: Mapping[str, int]
    """For how many keys each preset has series of this cluster."""
    merged_users: int
    """Series in which the label `resource` has the user too: old rules."""
    named_after_clients: int
    """Metrics that have the names of clients in their names: the rules of the KRaft example."""
    unnamed: Mapping[str, str]
    """The labels of a series without names; empty if all have names."""
