"""The use of series in spans of a time, each with the quota and the limit that decided then."""

from collections.abc import Iterable
from typing import NamedTuple

from quota_ops.model.quotas.entity import Entity
from quota_ops.model.quotas.quota import limits_a_client
from quota_ops.model.usage.series import SeriesNames, SeriesUse, Time
from quota_ops.model.usage.use import AT_LIMIT
from quota_ops.precedence.series import find_quota
from quota_ops.stages.use.past_limits import Limits


class Span(NamedTuple):
    """A period in which the limit of a series did not change."""

    time: Time
    is_known: bool
    """Whether it is known which quota decided, and its value."""
    quota: Entity | None
    limit: float | None
    """None for an unlimited quota, too."""
    lowest: float | None
    """The lowest limit of the span, of which `limit` is the highest."""


class Use(NamedTuple):
    """The use of a series on a broker in a span."""

    series: SeriesUse
    span: Span

    @property
    def quota(self) -> Entity | None:
        """The quota that decided then, if it is known and there was one."""
        return self.span.quota

    @property
    def limit(self) -> float | None:
        """The limit of that quota."""
        return self.span.limit

    @property
    def has_reached(self) -> bool:
        """Whether the highest use was at the limit."""
        return bool(self.limit) and self.series.highest >= AT_LIMIT * (self.limit or 0.0)


class KeyUse(NamedTuple):
    """The use of one key.

    `at_limit` has the seconds at the limit, at least and at most, by broker and series: a series
    that is missing there never reached it. The samples of series `without_number` are all NaN.
    """

    uses: list[Use]
    throttled: set[SeriesNames]
    at_limit: dict[tuple[str, Entity, SeriesNames], tuple[float, float]]
    without_number: set[SeriesNames]


def join_uses(parts: Iterable[KeyUse]) -> KeyUse:
    """Return the use of several times of one key."""
    joined = KeyUse([], set(), {}, set())
    for part in parts:
        joined.uses.extend(part.uses)
        joined.throttled.update(part.throttled)
        joined.without_number.update(part.without_number)
        for series, seconds in part.at_limit.items():
            add_at_limit(joined, series, *seconds)
    return joined


def add_at_limit(
    use: KeyUse, series: tuple[str, Entity, SeriesNames], least: float, most: float
) -> None:
    """Add seconds at the limit, at least and at most, to those of a series on a broker."""
    before = use.at_limit.get(series, (0.0, 0.0))
    use.at_limit[series] = before[0] + least, before[1] + most


def find_limit(key: str, limits: Limits, names: SeriesNames) -> tuple[Entity | None, float | None]:
    """Return the quota that decides a series, and its limit unless it is unlimited."""
    quota = find_quota(limits, *names)
    value = None if quota is None else limits[quota]
    return quota, value if value is not None and limits_a_client(key, value) else None
