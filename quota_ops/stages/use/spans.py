"""The use of series in spans of a time, each with the quota and the limit that decided then."""

from collections.abc import Sequence
from typing import NamedTuple

from quota_ops.model.quotas.entity import Entity
from quota_ops.model.quotas.quota import limits_a_client
from quota_ops.model.usage.series import SeriesNames, SeriesUse, Time
from quota_ops.model.usage.use import AT_LIMIT
from quota_ops.precedence.series import find_quota
from quota_ops.stages.use.past_limits import Limits, Period


class Span(NamedTuple):
    """A time in which one quota decided a series, with one limit as far as is known."""

    time: Time
    is_known: bool
    """Whether it is known which quota decided, and its value."""
    quota: Entity | None
    limit: float | None
    """None for an unlimited quota, too."""
    lowest: float | None
    """The lowest limit of the span, of which `limit` is the highest."""


class Use(NamedTuple):
    """The use of a series on a broker in a span.

    It was at its limit for `at_limit_least` to `at_limit` seconds. `throttled` is whether it was
    throttled at all.
    """

    series: SeriesUse
    span: Span
    throttled: bool = False
    at_limit_least: float = 0.0
    at_limit: float = 0.0

    @property
    def quota(self) -> Entity | None:
        """The quota that decided then, if it is known and there was one."""
        return self.span.quota

    @property
    def limit(self) -> float | None:
        """The limit of that quota."""
        return self.span.limit

    @property
    def share(self) -> float | None:
        """The p95 divided by the limit."""
        return self.series.p95 / self.limit if self.limit else None

    @property
    def has_reached(self) -> bool:
        """Whether the highest use was at the limit, or at the lowest that it may have been."""
        return bool(self.span.lowest) and self.series.highest >= AT_LIMIT * (
            self.span.lowest or 0.0
        )


class KeyUse(NamedTuple):
    """The use of one key; the samples of series `without_number` are all NaN."""

    uses: list[Use]
    without_number: set[SeriesNames]


def find_span(key: str, periods: Sequence[Period], names: SeriesNames, time: Time) -> Span:
    """Return the span of a series in a time, whose periods these are.

    It is known if one quota decided in all of them, though perhaps with several limits.
    """
    decided = {_find_limit(key, limits, names) for period in periods for limits in period.limits}
    quotas, values = {quota for quota, _ in decided}, [limit for _, limit in decided]
    if len(quotas) != 1 or not all(period.limits for period in periods):
        return Span(time, False, None, None, None)
    finite = [value for value in values if value is not None]
    limit = None if None in values else max(finite)
    return Span(time, True, quotas.pop(), limit, min(finite, default=None))


def _find_limit(key: str, limits: Limits, names: SeriesNames) -> tuple[Entity | None, float | None]:
    """Return the quota that decides a series, and its limit unless it is unlimited."""
    quota = find_quota(limits, *names)
    value = None if quota is None else limits[quota]
    return quota, value if value is not None and limits_a_client(key, value) else None
