"""Where a plan reads the use of its cluster's clients, and when it does."""

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from datetime import UTC, datetime

import pyarrow as pa

from quota_ops.model.errors import QuotaOpsError, UseUnknown
from quota_ops.model.moment import iso_utc
from quota_ops.model.plans.effect import Effect
from quota_ops.model.plans.guard_rules import EarlierRuns
from quota_ops.model.plans.plan import Plan
from quota_ops.model.quotas.rows import Key
from quota_ops.model.quotas.tables import ACTUAL
from quota_ops.model.usage.throttling import CutUse, Throttling
from quota_ops.model.usage.usage import UsagePolicy
from quota_ops.sql.effects import apply_targets
from quota_ops.stages.plan.throttling import (
    DAYS,
    UNKNOWN,
    PastUse,
    SeriesName,
    find_throttling,
    loses,
)
from quota_ops.store.history.digests import find_digests, list_past_days
from quota_ops.store.places.run_store import RunStore
from quota_ops.store.run.files import FACTS, THROTTLING
from quota_ops.store.run.folder import RunFolder
from quota_ops.usage.connection import PrometheusConnection
from quota_ops.usage.source import SeriesNames, UsageSource


class PrometheusReader:
    """Reads the use of some series from a cluster's Prometheus."""

    def __init__(self, source: UsageSource) -> None:
        self._source = source
        self.step = source.step

    def read(
        self, key: str, series: Collection[SeriesName], start: datetime, end: datetime
    ) -> tuple[pa.Table, pa.Table]:
        """Return the samples and scrapes of a key's series; UseUnknown if one cannot be read."""
        from quota_ops.usage.samples import join_samples, list_brokers, read_parts  # noqa: PLC0415 - an HTTP client

        brokers = list_brokers(self._source, start, end)
        wanted = {SeriesNames(*name) for name in series}
        samples = join_samples(read_parts(self._source, brokers, key, start, end, selection=wanted))
        return samples.rates, samples.up


def write_throttling(
    folder: RunFolder,
    plan: Plan,
    effects: Mapping[Key, Effect],
    earlier: EarlierRuns,
    store: RunStore,
    *,
    find_use: Callable[[str], PrometheusConnection],
) -> None:
    """Write whom the cuts of a plan would have throttled last week.

    Reads nothing for a plan that cuts nothing. Use that cannot be read is written as unknown.
    Writes nothing without `usage` in cluster.yaml, unless a guard compares use.
    """
    losing = [row.id for row in plan.writes if loses(effects, row.id)]
    is_used = plan.policy.usage or plan.strict_policy.guards.would_throttle is not None
    if not (losing and is_used) and not folder.has(THROTTLING):
        return
    now = datetime.now(UTC)
    try:
        usage = _find_usage(folder, plan, earlier)
        reader = PrometheusReader(UsageSource.of(usage, find_use(usage.prometheus)))
        past = read_past_use(store, plan.policy.cluster_id, now)
        found = _find(folder, plan, effects, reader=reader, past=past, now=now)
    except QuotaOpsError as error:
        cuts = tuple(CutUse(*row, why=UNKNOWN) for row in losing)
        found = Throttling(DAYS, iso_utc(now), cuts, error.message)
    folder.write(THROTTLING, found)


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


def _find(
    folder: RunFolder,
    plan: Plan,
    effects: Mapping[Key, Effect],
    *,
    reader: PrometheusReader,
    past: PastUse,
    now: datetime,
) -> Throttling:
    facts = folder.find(FACTS)
    before = {Key(row.entity, row.key): row.value for row in folder.read_rows(ACTUAL)}
    return find_throttling(
        plan.writes,
        effects,
        before,
        apply_targets(before, {row.id: row.target for row in plan.writes}),
        reader=reader,
        brokers=len(facts.brokers) if facts else 0,
        now=now,
        past=past,
    )


def read_past_use(store: RunStore, cluster_id: str, now: datetime) -> PastUse:
    """Return the highest use of each series on the recorded ones of the last seven days."""
    from quota_ops.sql.embedded_usage import open_digests  # noqa: PLC0415 - DuckDB

    digests = find_digests(store, cluster_id, list_past_days(now, DAYS))
    highest: dict[str, dict[SeriesName, float]] = defaultdict(dict)
    with open_digests([*digests.values()], dict.fromkeys(digests, 0)) as use:
        for key, *names, value in use.list_highest():
            highest[key][SeriesName(*names)] = value
        seconds = {key: sum(brokers.values()) for key, brokers in use.read_seen().items()}
    return PastUse(highest, len(digests), seconds)
