"""The use of a cluster's quotas, recorded or measured, with the limits of that time."""

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack
from datetime import UTC
from itertools import chain
from typing import TYPE_CHECKING

from quota_ops.model.clusters.scraped_brokers import ScrapedBrokers, match_brokers
from quota_ops.model.errors import InvalidInput, UseUnknown
from quota_ops.model.plans.policy import Policy
from quota_ops.model.quotas.quota import MEASURED_KEYS
from quota_ops.model.text import command
from quota_ops.model.usage.seen import count_each, count_together, join_seen
from quota_ops.model.usage.series import Time, time_of
from quota_ops.model.usage.use import QuotaUse, UseOverview, UseVerdict
from quota_ops.runs.past_quotas import read_past_quotas
from quota_ops.stages.use.listing import NOBODY, Listing
from quota_ops.stages.use.past_limits import PastQuotas
from quota_ops.stages.use.recorded import DAY, open_recorded
from quota_ops.stages.use.spans import SeriesUse
from quota_ops.store.history.digests import find_digests
from quota_ops.store.places.run_store import RunStore
from quota_ops.usage.presets import find_names
from quota_ops.usage.source import UsageSource

if TYPE_CHECKING:
    from quota_ops.runs.measured_use import MeasuredTime

Progress = Callable[[int, int], None]
"""Called with how many quota keys were read, and how many there are."""


def read_overview(
    source: UsageSource | None, policy: Policy, store: RunStore, time: Time, progress: Progress
) -> UseOverview:
    """Return the use of each quota that the last run saw.

    Recorded days are read from their digests, and the rest of the time from the source; without
    one, the rest is unknown. If the first day is recorded, the time begins with that day.

    Raises UseUnknown if Prometheus could not be read, InvalidInput for a run store that cannot be.
    """
    digests = find_digests(store, policy.cluster_id, _list_days(time))
    if (first := f"{time.start:%Y-%m-%d}") in digests:
        time = time._replace(start=time_of(first).start)
    past = read_past_quotas(store, policy.cluster, policy.cluster_id, time.start)
    exported = find_names(policy.usage).rates if policy.usage else {}
    quotas: list[QuotaUse] = []
    unlimited: dict[str, int] = {}
    without_names: list[str] = []
    window = (time.end - time.start).total_seconds()
    limits_known = [window]
    seen_of: dict[str, Mapping[str, int]] = {}
    with ExitStack() as stack:
        recorded = stack.enter_context(open_recorded(digests, past))
        recorded_seen = recorded.read_seen()
        gaps = _open_gaps(source, past, _list_gaps(time, recorded.days), stack)
        for number, key in enumerate(MEASURED_KEYS):
            progress(number, len(MEASURED_KEYS))
            measured = [gap.read(key) for gap in gaps]
            known = [gap.coverage.seen for gap, uses in zip(gaps, measured, strict=True) if uses]
            seen = join_seen([recorded_seen.get(key, {}), *known])
            uses = recorded.read_uses(key, chain.from_iterable(measured))
            if uses:
                seen_of[key] = count_each(seen)
            if any(use.row.names == NOBODY and use.row.highest > 0 for use in uses):
                without_names.append(key)
            is_read = bool(recorded.days or gaps)
            listing = Listing(past, time, key, key in exported, uses, seen, is_read)
            quotas += listing.list_quotas()
            if count := len({use.row.names for use in uses if _is_unlimited(use)}):
                unlimited[key] = count
            limits_known.append(
                sum(
                    (period.end - period.start).total_seconds()
                    for period in past.periods(key, *time)
                    if period.limits
                )
            )
    progress(len(MEASURED_KEYS), len(MEASURED_KEYS))
    scraped = join_seen([*recorded_seen.values(), *(gap.coverage.seen for gap in gaps)])
    coverage, brokers = count_each(scraped), past.facts.brokers if past.facts else None
    matched = match_brokers(coverage, brokers or ()) or ScrapedBrokers()
    intervals = [gap.coverage.interval for gap in gaps]
    step = policy.usage.step if policy.usage else 0
    return UseOverview(
        policy.cluster,
        start=time.start,
        end=time.end,
        scrape_interval=max(intervals, default=float(step)),
        step=step,
        coverage={broker: seconds / window for broker, seconds in coverage.items()},
        seen=count_together(scraped, brokers) / window,
        registered_brokers=None if brokers is None else len(brokers),
        limits_known=min(limits_known) / window,
        last_look=past.looks[-1].at if past.looks else None,
        quotas=quotas,
        without_limit=unlimited,
        not_counted=(
            *past.troubles,
            *(
                f"{why}: {command('record', policy.cluster, day=day)} records it again"
                for day, why in recorded.troubles.items()
            ),
        ),
        recorded_days=len(recorded.days),
        measured_times=len(gaps),
        without_names=tuple(without_names),
        absent_brokers=matched.absent,
        other_brokers=matched.others,
        without_series={
            key: max(seconds - seen.get(broker, 0) for broker, seconds in coverage.items())
            for key, seen in seen_of.items()
        },
    )


def select_owned(overview: UseOverview, owner: str | None) -> list[QuotaUse]:
    """Return the quotas of an owner, or all. Raises InvalidInput if no quota has this owner."""
    owners = {quota.owner for quota in overview.quotas}
    if owner is not None and owners and owner not in owners:
        raise InvalidInput(
            f"no quota that the last run read has the owner {owner} in Git; owners are "
            f"{', '.join(sorted(filter(None, owners))) or 'not declared'}",
            "Clients of a team without a quota use a default: quota-ops usage CLUSTER --format "
            "json lists each of them.",
        )
    return [quota for quota in overview.quotas if owner in {None, quota.owner}]


def require_known(overview: UseOverview, *, is_list: bool = False) -> None:
    """Raise UseUnknown if no use is known, after a result was shown.

    With `is_list`, the result lists quotas by their use, so its absence must not look like an empty
    list.
    """
    verdicts = {quota.verdict for quota in overview.quotas}
    has_share = any(quota.busiest and quota.busiest.share is not None for quota in overview.quotas)
    remedy = f"Run {command('usage', overview.cluster)} --probe to see why."
    if not overview.is_read:
        remedy = f"Run {command('record', overview.cluster)}, which stores the use of past days."
    if is_list and not has_share and UseVerdict.UNUSED not in verdicts:
        raise UseUnknown(
            f"the use of {overview.cluster} is unknown, so this list does not show who is near a "
            "limit, or what is unused",
            remedy,
        )
    if not overview.coverage or verdicts == {UseVerdict.UNKNOWN}:
        raise UseUnknown(f"the use of {overview.cluster} is unknown", remedy)


def _list_days(time: Time) -> list[str]:
    """Return the days in UTC that end in a period, including one that the period begins in."""
    days = []
    day = time.start.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    while (day := day + DAY) <= time.end:
        days.append(f"{day - DAY:%Y-%m-%d}")
    return days


def _list_gaps(time: Time, days: Collection[str]) -> Iterator[Time]:
    """Yield the periods of a time outside these days; adjacent ones are joined."""
    start = time.start
    for day in sorted(days):
        recorded = time_of(day)
        if start < recorded.start:
            yield Time(start, recorded.start)
        start = recorded.end
    if start < time.end:
        yield Time(start, time.end)


def _open_gaps(
    source: UsageSource | None, past: PastQuotas, gaps: Iterator[Time], stack: ExitStack
) -> "list[MeasuredTime]":
    if source is None:
        return []
    from quota_ops.runs.measured_use import open_time  # an HTTP client

    return [stack.enter_context(open_time(source, past, time)) for time in gaps]


def _is_unlimited(use: SeriesUse) -> bool:
    return use.row.highest > 0 and use.span.is_known and use.span.quota is None
