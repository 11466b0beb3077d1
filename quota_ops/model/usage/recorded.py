"""What clients used on recorded days: beside the limits of a run, and of the members of groups."""

from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple

from msgspec import Struct

from quota_ops.model.usage.series import SeriesNames


class RecordedQuota(NamedTuple):
    """The use of the busiest client of a quota, on its busiest broker, in the unit of its key.

    `limit` is the limit that the run read, `share` the p95 divided by it. The use was at least 97 %
    of it for `at_limit_least` to `at_limit` seconds. `clients` is how many clients have this limit
    each.
    """

    entity: str
    key: str
    owner: str | None
    limit: float
    client: str
    clients: int
    p95: float
    highest: float
    share: float
    at_limit_least: float
    at_limit: float
    throttled: bool
    days: tuple[float | None, ...]
    """The share on each day of the table; None for a day without its use."""


class RecordedUse(Struct, frozen=True):
    """The use of the quotas that are nearest to their limit, nearest first.

    `days` are all days (UTC) from the first recorded one to the last, and `recorded` how many of
    them are; `seen` is the share of the recorded days in which all brokers were seen. `quotas` is
    how many quotas of the run anybody used. `others` are used quotas that rows of the run are of,
    without days.
    """

    days: tuple[str, ...]
    recorded: int
    seen: float
    quotas: int
    nearest: tuple[RecordedQuota, ...]
    others: tuple[RecordedQuota, ...] = ()
    damaged: int = 0
    """How many more days are stored and cannot be read."""


class GroupUse(NamedTuple):
    """What members of groups used on `days` recorded days before `until` (2026-11-23).

    `rates` has the p95 on the busiest broker, by key and names. A member without one was not
    counted by any broker, so its use is unknown.
    """

    days: int
    until: str
    rates: Mapping[tuple[str, SeriesNames], float]


FindUse = Callable[[str, str, Collection[SeriesNames]], GroupUse]
"""Finds the use of members, by the cluster's id and the time (ISO 8601, UTC) of their limits."""
