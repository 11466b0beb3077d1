"""The artifact use.json: what clients used on recorded days, beside the limits of a run."""

import logging
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from functools import partial
from itertools import accumulate, islice

from msgspec.structs import replace

from quota_ops.model.clusters.cluster_facts import ClusterFacts
from quota_ops.model.errors import QuotaOpsError
from quota_ops.model.quotas.entity import CLIENT_ID, USER, Entity
from quota_ops.model.quotas.quota import MEASURED_KEYS
from quota_ops.model.quotas.rows import Key
from quota_ops.model.quotas.tables import DESIRED
from quota_ops.model.runs.report import Report
from quota_ops.model.usage.recorded import RecordedQuota, RecordedUse
from quota_ops.model.usage.seen import count_together, join_seen
from quota_ops.model.usage.series import SeriesNames, Time, time_of
from quota_ops.model.usage.use import QuotaUse, SeriesShare
from quota_ops.report.outline.row_status import report_rows
from quota_ops.stages.use.listing import Listing
from quota_ops.stages.use.past_limits import Look, PastQuotas
from quota_ops.stages.use.recorded import DAY, open_recorded
from quota_ops.store.history.digests import find_digests, list_past_days
from quota_ops.store.places.place import Place
from quota_ops.store.places.run_store import RunStore
from quota_ops.store.run.files import FACTS, USE
from quota_ops.store.run.folder import RunFolder

_log = logging.getLogger(__name__)
DAYS = 30
MOST_BYTES = 5_000_000
"""The most bytes of digests that a report reads, in a second: 30 days of 2,500 busy clients."""
MOST_QUOTAS = 20
"""How many quotas a page shows in the table of use."""
MOST_ROWS = 1_000
"""How many more rows of a run get a bar of use: those that are nearest to their limit."""


def add_recorded_use(
    folder: RunFolder, report: Report, stored: Iterable[tuple[str, str, float]]
) -> Report:
    """Return a report with the recorded use, which is read once and then kept.

    A run without a plan has none, and neither has a cluster without recorded days. Use never makes
    a report fail.
    """
    if report.plan is None or report.use is not None or report.cluster_id is None:
        return report
    owners = partial(_read_owners, folder)
    try:
        rows = {row.difference.id for row in report_rows(report)}
        store, now, facts = folder.store, datetime.now(UTC), folder.find(FACTS)
        found = read_recorded_use(
            store, report.cluster_id, stored, owners, now, facts=facts, rows=rows
        )
    except QuotaOpsError as error:
        _log.warning("The recorded use cannot be read: %s", error.message)
        return report
    if found is None:
        return report
    folder.write(USE, found)
    return replace(report, use=found)


def _read_owners(folder: RunFolder) -> Mapping[tuple[Entity, str], str | None]:
    """Return the owner of each declared row of a run."""
    rows = folder.read_rows(DESIRED) if folder.has(DESIRED.file) else ()
    return {(Entity.parse(row.entity), row.key): row.owner for row in rows}


def read_recorded_use(
    store: RunStore,
    cluster_id: str,
    stored: Iterable[tuple[str, str, float]],
    read_owners: Callable[[], Mapping[tuple[Entity, str], str | None]],
    now: datetime,
    *,
    facts: ClusterFacts | None = None,
    rows: Collection[Key] = (),
) -> RecordedUse | None:
    """Return the use beside stored limits and those of `rows`; None if no day is recorded.

    A client belongs to the quota that would limit it now. `read_owners` is called only if a day is
    recorded. Damaged days are logged and left out.
    """
    digests = _choose_newest(find_digests(store, cluster_id, list_past_days(now, DAYS)))
    if not digests:
        return None
    time = Time(time_of(min(digests)).start, time_of(max(digests)).end)
    limits: dict[str, dict[Entity, float]] = defaultdict(dict)
    for entity, key, value in stored:
        limits[key][Entity.parse(entity)] = value
    past = PastQuotas([Look(time.start, limits)], read_owners(), facts, ())
    with open_recorded(digests, past, by_day=True) as recorded:
        if recorded.troubles:
            _log.warning("Recorded days cannot be read: %s", "; ".join(recorded.troubles.values()))
        if not recorded.days:
            return None
        seen = recorded.read_seen()
        used = [
            (busiest.share, busiest.highest / busiest.limit, quota, busiest)
            for key in MEASURED_KEYS
            for uses in [recorded.read_uses(key)]
            for quota in Listing(past, time, key, True, uses, seen.get(key, {})).list_quotas()
            if (busiest := quota.busiest) and busiest.limit and busiest.share is not None
        ]
        used.sort(key=lambda found: found[:2], reverse=True)
        shown = used[:MOST_QUOTAS]
        names = {(quota.key, SeriesNames(*busiest[:2])) for *_, quota, busiest in shown}
        daily = recorded.read_days(names)
    days = _list_days(recorded.days)
    together = count_together(join_seen(seen.values()), facts.brokers if facts else None)
    share = together / (len(recorded.days) * DAY.total_seconds())
    nearest = tuple(_describe(quota, busiest, days, daily) for *_, quota, busiest in shown)
    others = (
        _describe(quota, busiest, (), {})
        for *_, quota, busiest in used[MOST_QUOTAS:]
        if Key(quota.entity.text, quota.key) in rows
    )
    some = tuple(islice(others, MOST_ROWS))
    damaged = len(recorded.troubles)
    return RecordedUse(days, len(recorded.days), share, len(used), nearest, some, damaged)


def _choose_newest(digests: Mapping[str, Place]) -> dict[str, Place]:
    """Return the newest days whose files are not too large together, sorted."""
    if not digests:
        return {}
    size_of = {leaf.path: leaf.size for leaf in next(iter(digests.values())).parent.walk()}
    newest = sorted(digests, reverse=True)
    sizes = accumulate(size_of.get(digests[day].name, 0) for day in newest)
    kept = [day for day, size in zip(newest, sizes, strict=True) if size <= MOST_BYTES]
    return {day: digests[day] for day in reversed(kept)}


def _list_days(recorded: Sequence[str]) -> tuple[str, ...]:
    """Return the days from the first to the last, including those that are not recorded."""
    first, last = (date.fromisoformat(recorded[at]) for at in (0, -1))
    return tuple(f"{first + timedelta(days=at)}" for at in range((last - first).days + 1))


def _describe(
    quota: QuotaUse,
    busiest: SeriesShare,
    days: Sequence[str],
    daily: Mapping[tuple[str, SeriesNames, str, str], float],
) -> RecordedQuota:
    names, limit = SeriesNames(*busiest[:2]), busiest.limit or 0.0
    p95s = [daily.get((quota.key, names, busiest.broker, day)) for day in days]
    parts = zip((USER, CLIENT_ID), names, strict=True)
    return RecordedQuota(
        entity=quota.entity.text,
        key=quota.key,
        owner=quota.owner,
        limit=limit,
        client=Entity.of({kind: name for kind, name in parts if name is not None}).text,
        clients=len(quota.clients),
        p95=busiest.p95,
        highest=busiest.highest,
        share=busiest.share or 0.0,
        at_limit_least=busiest.at_limit_least or 0.0,
        at_limit=busiest.at_limit or 0.0,
        throttled=busiest.throttled,
        days=tuple(None if p95 is None else p95 / limit for p95 in p95s),
    )
