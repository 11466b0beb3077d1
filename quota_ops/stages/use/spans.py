"""The use of a series, with the quota and the limit that decided then."""

from collections.abc import Sequence
from typing import NamedTuple

from quota_ops.model.quotas.entity import Entity
from quota_ops.model.quotas.quota import limits_a_client
from quota_ops.model.usage.digest import UseRow
from quota_ops.model.usage.series import SeriesNames
from quota_ops.precedence.resolution import find_quota
from quota_ops.stages.use.past_limits import Limits, Period


class Span(NamedTuple):
    """All times in which one quota decided a series, with one limit as far as is known."""

    is_known: bool
    """Whether it is known which quota decided, and its value."""
    quota: Entity | None
    limit: float | None
    """None for an unlimited quota, too."""
    lowest: float | None
    """The lowest limit that may have been in force, of any quota that may have decided."""

    @property
    def has_one_limit(self) -> bool:
        """Whether one limit was in force all along, or none: what throttled a client is known."""
        return self.is_known and self.limit == self.lowest


class SeriesUse(NamedTuple):
    """The use of a series on a broker in a span."""

    row: UseRow
    span: Span

    @property
    def share(self) -> float | None:
        """The p95 divided by the limit."""
        return self.row.p95 / self.span.limit if self.span.limit else None


def find_span(key: str, periods: Sequence[Period], names: SeriesNames) -> Span:
    """Return the span of a series in these periods.

    It is known if one quota decided in all of them, though perhaps with several limits.
    """
    decided = {_find_limit(key, limits, names) for period in periods for limits in period.limits}
    if not all(period.limits for period in periods):
        return Span(False, None, None, None)
    quotas, values = {quota for quota, _ in decided}, [limit for _, limit in decided]
    lowest = min((value for value in values if value is not None), default=None)
    if len(quotas) != 1:
        return Span(False, None, None, lowest)
    limit = None if None in values else max(value for value in values if value is not None)
    return Span(True, quotas.pop(), limit, lowest)


def _find_limit(key: str, limits: Limits, names: SeriesNames) -> tuple[Entity | None, float | None]:
    """Return the quota that decides a series, and its limit unless it is unlimited."""
    quota = find_quota(limits, *names)
    value = None if quota is None else limits[quota]
    return quota, value if value is not None and limits_a_client(key, value) else None
