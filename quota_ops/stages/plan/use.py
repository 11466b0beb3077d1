"""The source from which a plan reads the use of clients, and when it does."""

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from datetime import UTC, datetime
from functools import partial
from math import inf

import pyarrow as pa

from quota_ops.model.errors import QuotaOpsError, UseUnknown
from quota_ops.model.moment import iso_utc
from quota_ops.model.plans.effect import Effect
from quota_ops.model.plans.guard_rules import EarlierRuns
from quota_ops.model.plans.plan import Plan
from quota_ops.model.quotas.entity import Entity
from quota_ops.model.quotas.quota import QUOTA_KEYS
from quota_ops.model.quotas.rows import Key
from quota_ops.model.quotas.tables import ACTUAL, DESIRED
from quota_ops.model.usage.series import SeriesNames, Time
from quota_ops.model.usage.throttling import CutUse, ThrottledNow, Throttling
from quota_ops.model.usage.usage import UsagePolicy
from quota_ops.sql.client_effects import apply_targets
from quota_ops.stages.plan.throttling import DAYS, UNKNOWN, PastUse, find_throttling, loses
from quota_ops.stages.use.past_limits import Look, PastQuotas
from quota_ops.stages.use.throttled import find_throttled
from quota_ops.store.history.digests import find_digests, list_past_days
from quota_ops.store.places.run_store import RunStore
from quota_ops.store.run.files import FACTS, THROTTLED, THROTTLING
from quota_ops.store.run.folder import RunFolder
from quota_ops.usage.connection import PrometheusConnection
from quota_ops.usage.source import SAMPLES, Samples, UsageSource

MOST_CLIENTS = 20
"""How many throttled clients a page shows: those that wait longest."""
_PATIENCE = 5.0


def read_samples(
    source: UsageSource, key: str, series: Collection[SeriesNames], time: Time
) -> Samples:
    """Return the use of some series of a key on all brokers; UseUnknown if it cannot be read."""
    from quota_ops.usage.samples import (  # an HTTP client
        find_throttled_series,
        has_unnamed,
        list_brokers,
        read_rates,
        read_scrapes,
    )

    brokers = list_brokers(source, *time)
    if has_unnamed(source, key, time):
        raise UseUnknown(
            f"some series of {key} have no names of clients, so its use may be of others",
            "quota-ops usage CLUSTER --probe shows which.",
        )
    rates = read_rates(source, brokers, key, time, selection=series)
    return Samples(
        pa.concat_tables([SAMPLES.empty_table(), *rates]),
        read_scrapes(source, brokers, time),
        () if _is_whole(key) else find_throttled_series(source, brokers, key, time, series),
    )


def _is_whole(key: str) -> bool:
    """Return whether brokers count all that a client wants of a key while they throttle it."""
    measured = QUOTA_KEYS[key].measured
    return measured is not None and measured.is_whole


def write_throttling(
    folder: RunFolder,
    plan: Plan,
    effects: Mapping[Key, Effect],
    earlier: EarlierRuns,
    *,
    find_use: Callable[[str], PrometheusConnection],
) -> None:
    """Write whom the cuts of a plan would have throttled last week.

    Reads nothing for a plan that cuts nothing. Use that cannot be read is written as unknown.
    Writes nothing without `usage` in cluster.yaml, unless a guard compares use.
    """
    is_used = plan.policy.usage or plan.strict_policy.guards.would_throttle is not None
    losing = [row.id for row in plan.writes if loses(effects, row.id)] if is_used else []
    if not losing and not folder.has(THROTTLING):
        return
    now = datetime.now(UTC)
    try:
        usage = _find_usage(folder, plan, earlier)
        source = UsageSource.of(usage, find_use(usage.prometheus))
        past = read_past_use(folder.store, plan.policy.cluster_id, now)
        facts = folder.find(FACTS)
        before = folder.read_values(ACTUAL)
        found = find_throttling(
            plan.writes,
            effects,
            before,
            apply_targets(before, {row.id: row.target for row in plan.writes}),
            read=partial(read_samples, source),
            step=source.step,
            brokers=facts.brokers if facts else (),
            now=now,
            past=past,
        )
    except QuotaOpsError as error:
        cuts = tuple(CutUse(*row, why=UNKNOWN) for row in losing)
        found = Throttling(DAYS, iso_utc(now), cuts, error.message)
    folder.write(THROTTLING, found)


def write_throttled(
    folder: RunFolder, plan: Plan, *, find_use: Callable[[str], PrometheusConnection]
) -> None:
    """Write which clients are throttled at this moment, for the page; nothing without `usage`.

    What cannot be read within some seconds is written as unknown: no plan waits for a page.
    """
    if plan.policy.usage is None:
        return
    now, facts = datetime.now(UTC), folder.find(FACTS)
    brokers = facts.brokers if facts else ()
    read_past = partial(_read_stored, folder, now)
    try:
        source = UsageSource.of(plan.policy.usage, find_use(plan.policy.usage.prometheus))
        found = find_throttled(
            source, now, brokers, read_past, patience=_PATIENCE, most=MOST_CLIENTS
        )
    except QuotaOpsError as error:
        found = ThrottledNow(iso_utc(now), trouble=error.message)
    folder.write(THROTTLED, found)


def _read_stored(folder: RunFolder, now: datetime) -> PastQuotas:
    """Return what a run read of the cluster, and who owns it in Git."""
    stored: dict[str, dict[Entity, float]] = defaultdict(dict)
    for row in folder.read_rows(ACTUAL):
        stored[row.key][Entity.parse(row.entity)] = row.value
    owners = {(Entity.parse(row.entity), row.key): row.owner for row in folder.read_rows(DESIRED)}
    return PastQuotas([Look(now, stored)], owners, None, ())


def _find_usage(folder: RunFolder, plan: Plan, earlier: EarlierRuns) -> UsagePolicy:
    """Return where to read use; UseUnknown if the run cannot, or may not.

    A branch may name any connection, so a review reads use only as its merge base declares it.
    """
    usage, facts = plan.policy.usage, folder.find(FACTS)
    if usage is None:
        raise UseUnknown("cluster.yaml has no `usage`")
    is_review = earlier.others is not None
    if is_review and (earlier.policy is None or earlier.policy.usage != usage):
        raise UseUnknown("this branch changes `usage` in cluster.yaml, which counts once it merged")
    if facts and facts.callback_classes:
        name = facts.callback_classes[0]
        raise UseUnknown(f"{name} on the brokers replaces what Apache Kafka limits and counts")
    return usage


def read_past_use(store: RunStore, cluster_id: str, now: datetime) -> PastUse:
    """Return the highest use of each series on the recorded ones of the last seven days."""
    from quota_ops.sql.embedded_usage import open_digests  # DuckDB

    digests = find_digests(store, cluster_id, list_past_days(now, DAYS))
    highest: dict[str, dict[SeriesNames, float]] = defaultdict(dict)
    with open_digests([*digests.values()], dict.fromkeys(digests, 0)) as use:
        for key, *names, value, is_throttled in use.list_highest():
            # What it wanted may have been any more, so its samples are compared.
            most = inf if is_throttled and not _is_whole(key) else value
            highest[key][SeriesNames(*names)] = most
        return PastUse(highest, len(digests), use.read_seen())
