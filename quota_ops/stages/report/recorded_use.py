"""The artifact use.json: what clients used on recorded days, beside the limits of a run."""

import logging
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

from quota_ops.model.errors import QuotaOpsError
from quota_ops.model.quotas.entity import Entity
from quota_ops.model.quotas.quota import limits_a_client
from quota_ops.model.quotas.rows import Key
from quota_ops.model.quotas.tables import DESIRED
from quota_ops.model.runs.report import Report
from quota_ops.model.usage.digest import UseRow
from quota_ops.model.usage.recorded import RecordedQuota, RecordedUse
from quota_ops.model.usage.use import AT_LIMIT
from quota_ops.precedence.series import find_quota
from quota_ops.store.history.digests import find_digests, list_past_days
from quota_ops.store.places.place import Place
from quota_ops.store.places.run_store import RunStore
from quota_ops.store.run.files import USE
from quota_ops.store.run.folder import RunFolder

if TYPE_CHECKING:
    from quota_ops.sql.embedded_usage import RecordedSeries, SummedDays

_log = logging.getLogger(__name__)
DAYS = 30
MOST_BYTES = 5_000_000
"""The most bytes of digests that a report reads, in a second: 30 days of 2,500 busy clients."""
MOST_QUOTAS = 20
"""How many quotas a page shows."""


class _Client(NamedTuple):
    """A client that brokers counted, and the quota that would limit it now."""

    key: str
    names: tuple[str | None, str | None]
    quota: Entity
    limit: float


def add_recorded_use(
    folder: RunFolder, report: Report, stored: Iterable[tuple[str, str, float]]
) -> Report:
    """Return a report with the recorded use, which is read once and then kept.

    A run without a plan has none, and neither has a cluster without recorded days. Use never makes
    a report fail.
    """
    if report.plan is None or report.use is not None or report.cluster_id is None:
        return report
    owners = {}
    if folder.has(DESIRED.file):
        owners = {Key(row.entity, row.key): row.owner for row in folder.read_rows(DESIRED)}
    try:
        found = read_recorded_use(
            folder.store, report.cluster_id, stored, owners, datetime.now(UTC)
        )
    except QuotaOpsError as error:
        _log.warning("The recorded use cannot be read: %s", error.message)
        return report
    if found is None:
        return report
    folder.write(USE, found)
    return replace(report, use=found)


def read_recorded_use(
    store: RunStore,
    cluster_id: str,
    stored: Iterable[tuple[str, str, float]],
    owners: Mapping[Key, str | None],
    now: datetime,
) -> RecordedUse | None:
    """Return the use beside stored limits; None if no day is recorded.

    A client belongs to the quota that would limit it now. Raises InvalidInput for a damaged digest.
    """
    digests = _choose_newest(find_digests(store, cluster_id, list_past_days(now, DAYS)))
    if not digests:
        return None
    from quota_ops.sql.embedded_usage import open_digests  # noqa: PLC0415 - DuckDB

    with open_digests([*digests.values()], {day: at for at, day in enumerate(digests)}) as summed:
        series = summed.list_series()
        clients = list(_find_clients(series, stored))
        by_quota: dict[tuple[str, Entity], list[UseRow]] = defaultdict(list)
        for row in _measure(summed, series, clients):
            client = clients[row.span]
            by_quota[client.key, client.quota].append(row)

        def rank(row: UseRow) -> tuple[float, float]:
            return row.p95 / clients[row.span].limit, row.highest / clients[row.span].limit

        busiest = [max(rows, key=rank) for rows in by_quota.values()]
        used = sorted((row for row in busiest if row.highest), key=rank, reverse=True)
        shown = used[:MOST_QUOTAS]
        daily = _measure_days(summed, series, [clients[row.span] for row in shown])
        seen = [seconds for brokers in summed.read_seen().values() for seconds in brokers.values()]
    days = _list_days([*digests])
    nearest = []
    for number, row in enumerate(shown):
        client = clients[row.span]
        shares = {day: daily.get((number, row.broker, at)) for at, day in enumerate(digests)}
        count = len({other.span for other in by_quota[client.key, client.quota]})
        owner = owners.get(Key(client.quota.text, client.key))
        nearest.append(_describe(row, client, owner, count, tuple(map(shares.get, days))))
    share = min(seen, default=0.0) / timedelta(days=len(digests)).total_seconds()
    return RecordedUse(days, len(digests), min(share, 1.0), len(used), tuple(nearest))


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
    """Return the days from the first to the last, also those between that are not recorded."""
    first, last = (date.fromisoformat(recorded[at]) for at in (0, -1))
    return tuple(f"{first + timedelta(days=at)}" for at in range((last - first).days + 1))


def _find_clients(
    series: "Iterable[RecordedSeries]", stored: Iterable[tuple[str, str, float]]
) -> Iterator[_Client]:
    limits: dict[str, dict[Entity, float]] = defaultdict(dict)
    for entity, key, value in stored:
        limits[key][Entity.parse(entity)] = value
    for key, *names in dict.fromkeys(each[:3] for each in series):
        quota = find_quota(limits[key], *names)
        if quota is not None and limits_a_client(key, limits[key][quota]):
            yield _Client(key, (names[0], names[1]), quota, limits[key][quota])


def _measure(
    summed: "SummedDays", series: "Iterable[RecordedSeries]", clients: Sequence[_Client]
) -> list[UseRow]:
    """Return the use of each client in all days: `span` is the client's number."""
    from quota_ops.sql.embedded_usage import SpanRow  # noqa: PLC0415 - DuckDB

    numbers = {(client.key, *client.names): at for at, client in enumerate(clients)}
    return list(
        summed.measure(
            [
                SpanRow(*each, numbers[each[:3]], AT_LIMIT * clients[numbers[each[:3]]].limit)
                for each in series
                if each[:3] in numbers
            ]
        )
    )


def _measure_days(
    summed: "SummedDays", series: "Iterable[RecordedSeries]", clients: Sequence[_Client]
) -> dict[tuple[int, str, int], float]:
    """Return the share of the limit by the number of a client, broker and number of a day."""
    from quota_ops.sql.embedded_usage import SpanRow  # noqa: PLC0415 - DuckDB

    numbers = {(client.key, *client.names): at for at, client in enumerate(clients)}
    rows = summed.measure(
        [
            SpanRow(*each, numbers[each[:3]] * DAYS + each.part, None)
            for each in series
            if each[:3] in numbers
        ]
    )
    return {
        (row.span // DAYS, row.broker, row.span % DAYS): row.p95 / clients[row.span // DAYS].limit
        for row in rows
    }


def _describe(
    row: UseRow,
    client: _Client,
    owner: str | None,
    count: int,
    days: tuple[float | None, ...],
) -> RecordedQuota:
    parts = zip(("user", "client-id"), client.names, strict=True)
    return RecordedQuota(
        client.quota.text,
        client.key,
        owner,
        client.limit,
        Entity.of({kind: name for kind, name in parts if name is not None}).text,
        count,
        row.p95,
        row.highest,
        row.p95 / client.limit,
        row.at_limit,
        row.throttled,
        days,
    )
