"""Suggested limits of quotas, derived from use that was measured without throttling."""

from collections.abc import Iterator, Sequence
from math import ceil, floor, log10
from typing import NamedTuple

from quota_ops.model.quotas.quota import QUOTA_KEYS, format_limit, limits_a_client
from quota_ops.model.text import floor_percent
from quota_ops.model.usage.throttling import ENOUGH
from quota_ops.model.usage.use import QuotaUse, SeriesShare, UseOverview, UseVerdict

_NEAR = 0.2
"""A limit that is higher than a suggestion by less than this part of itself stays."""
_UNREACHABLE = 1000
"""A default this many times as high as a suggestion limits nobody: it makes brokers measure."""
_DIGITS = 2
"""Significant digits of a suggested limit, which people read; it is rounded up."""


class Suggestion(NamedTuple):
    """A quota, the suggested limit (None if it should stay), and the reason."""

    entity: str
    key: str
    limit: float
    suggested: float | None
    reason: str


def suggest_limits(overview: UseOverview, margin: float) -> Iterator[Suggestion]:
    """Yield a suggestion for each quota of a cluster that its use explains, or why there is none.

    A suggested limit is the p95 of the busiest client plus `margin` percent, and at least the
    highest use that was seen, so that it would not have throttled anything that was recorded.
    Nothing is suggested from throttled use, which shows the limit and not what clients need, nor
    from a small part of the time, nor if use of another cluster may be counted. A quota whose limit
    fits is left out.
    """
    for quota in overview.quotas:
        if not limits_a_client(quota.key, quota.limit):
            continue
        if (found := _suggest(quota, overview, margin)) is not None:
            suggested, reason = found
            yield Suggestion(quota.entity.text, quota.key, quota.limit, suggested, reason)


def _suggest(
    quota: QuotaUse, overview: UseOverview, margin: float
) -> tuple[float | None, str] | None:
    """Return the suggested limit, if there is one, and why; None if the limit fits."""
    if quota.verdict is UseVerdict.UNUSED:
        unless = ", unless it is there to measure" if quota.entity.has_default else ""
        return None, f"nobody used it: remove it if nobody will{unless}"
    if quota.verdict is not UseVerdict.USED:
        return None, quota.reason or "no use was seen, which does not prove that there was none"
    reached = [series for series in quota.clients if series.throttled or series.at_limit != 0]
    if reached:
        return None, _explain_reached(quota, reached)
    p95, highest = (max(getattr(series, name) for series in quota.clients) for name in _MEASURED)
    needed = _round_up(quota.key, max(p95 * (1 + margin / 100), highest))
    if quota.limit * (1 - _NEAR) < needed <= quota.limit:
        return None
    if (why := _explain_unreachable(quota, needed) or _explain_little(quota, overview)) is not None:
        return None, why
    basis = "p95" if p95 * (1 + margin / 100) >= highest else "highest use"
    return needed, f"by the {basis} of its busiest client{_describe_most(quota)}"


def _explain_unreachable(quota: QuotaUse, needed: float) -> str | None:
    """Return why a default stays that limits nobody; None for any other quota."""
    if not quota.entity.has_default or needed >= quota.limit / _UNREACHABLE:
        return None
    return f"less than 1/{_UNREACHABLE:,} of it was used, as if it is there to measure"


def _explain_little(quota: QuotaUse, overview: UseOverview) -> str | None:
    """Return why the use of a quota is not known well enough for another limit, if it is not."""
    if overview.has_others:
        return "more brokers were scraped than are registered, so it may be use of another cluster"
    if quota.key in overview.without_names:
        return "some series of this key have no names of clients, so it may be the use of others"
    if overview.seen < ENOUGH:
        return f"only {floor_percent(overview.seen)} of the time was seen"
    counted = max(quota.clients, key=lambda series: series.p95).counted
    if counted >= ENOUGH * overview.seconds:
        return None
    hours = f"{counted / 3600:.1f} of {overview.seconds / 3600:.0f} hours"
    return f"its busiest client has samples for only {hours}"


def _explain_reached(quota: QuotaUse, perhaps: Sequence[SeriesShare]) -> str:
    """Return why nothing is suggested for a quota that some clients reached, or may have."""
    if any(series.limit != quota.limit for series in perhaps):
        return "its limit then was another or is not known, so it may have held its clients back"
    count = len(quota.clients)
    reached = sum(series.throttled or bool(series.at_limit_least) for series in perhaps)
    if not reached:
        return "its clients may have reached it, so how much they need is unknown"
    if count == 1:
        return "its clients reached it, so how much they need is unknown"
    if reached == count:
        return f"each of the {count:,} clients with this limit reached it, so it is too low"
    most = _describe_most(quota)
    return f"{reached:,} of {count:,} clients reached it, so their need is unknown{most}"


def _describe_most(quota: QuotaUse) -> str:
    """Return what most clients of a limit need, if it has many clients; otherwise nothing."""
    count = len(quota.clients)
    if count < _MANY:
        return ""
    p95s = sorted(series.p95 for series in quota.clients)
    value = format_limit(quota.key, _round_up(quota.key, p95s[ceil(_MOST * count) - 1] or 1.0))
    return f"; {ceil(_MOST * count):,} of its {count:,} clients have a p95 of at most {value}"


_MANY, _MOST = 20, 0.95
"""From how many clients on the use of most of them is shown, and how many most are."""
_MEASURED = ("p95", "highest")


def _round_up(key: str, value: float) -> float:
    step = 10.0 ** (floor(log10(value)) - _DIGITS + 1)
    if QUOTA_KEYS[key].whole:
        step = max(step, 1.0)
    return float(f"{ceil(value / step) * step:.12g}")
