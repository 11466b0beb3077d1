"""The use of recorded days, beside the limits of that time, from their digests."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from quota_ops.model.errors import InvalidInput
from quota_ops.model.quotas.entity import Entity
from quota_ops.model.usage.series import SeriesNames, SeriesUse, Time
from quota_ops.model.usage.usage import USED_KEYS
from quota_ops.model.usage.use import AT_LIMIT
from quota_ops.precedence.resolution import ANONYMOUS
from quota_ops.runs.past_quotas import PastQuotas, Period
from quota_ops.runs.use_spans import KeyUse, Span, Use, find_limit
from quota_ops.store.history.digests import find_digests, list_past_days
from quota_ops.store.places.place import Place
from quota_ops.store.places.run_store import RunStore

DAY = timedelta(days=1)
_DAYS = 30


class RecordedDays(NamedTuple):
    """What clients used on some days, by key, and for how many seconds that is known, by broker."""

    uses: Mapping[str, KeyUse]
    seen: Mapping[str, Mapping[str, float]]


def time_of(day: str) -> Time:
    """Return the time of a day in UTC."""
    start = datetime.fromisoformat(day).replace(tzinfo=UTC)
    return Time(start, start + DAY)


def read_recorded(digests: Mapping[str, Place], past: PastQuotas) -> RecordedDays:
    """Return the use of days that have a digest.

    The order of samples is lost, so the highest limit of a day counts for all of it: no share is
    higher than the true one. Raises InvalidInput if a digest is damaged.
    """
    if not digests:
        return RecordedDays({}, {})
    from quota_ops.sql.embedded_usage import SpanRow, open_digests  # noqa: PLC0415 - DuckDB

    parts = _divide([*digests], past)
    numbers = {day: number for number, part in enumerate(parts) for day in part.days}
    spans: dict[tuple[str, SeriesNames, Span], int] = {}
    rows: list[SpanRow] = []
    with open_digests([*digests.values()], numbers) as recorded:
        for series in recorded.list_series():
            names = SeriesNames(series.user_name, series.client_id)
            span = parts[series.part].find_span(series.key, names)
            number = spans.setdefault((series.key, names, span), len(spans))
            least = None if span.limit is None else AT_LIMIT * span.limit
            rows.append(SpanRow(*series, number, least))
        of_number = [*spans]
        at_limit: dict[str, dict[tuple[str, Entity, SeriesNames], float]] = {
            key: defaultdict(float) for key in USED_KEYS
        }
        uses = {key: KeyUse([], set(), at_limit[key]) for key in USED_KEYS}
        for row in recorded.measure(rows):
            key, names, span = of_number[row.span]
            use = uses[key]
            use.uses.append(Use(SeriesUse(row.broker, names, row.p50, row.p95, row.highest), span))
            if row.throttled:
                use.throttled.add(names)
            if span.quota is not None and row.at_limit:
                at_limit[key][row.broker, span.quota, names] += row.at_limit
        return RecordedDays(uses, recorded.read_seen())


def read_client_rates(
    store: RunStore, cluster_id: str, now: datetime
) -> dict[tuple[str, str], dict[str, float]]:
    """Return the p95 of each user with a client id on its busiest broker, by key.

    It is that of the recorded ones of the last 30 days. The use of a user or a client id alone is
    left out: nobody knows how it is divided. Raises InvalidInput for a damaged digest, and if no
    day is recorded.
    """
    from quota_ops.sql.embedded_usage import SpanRow, open_digests  # noqa: PLC0415 - DuckDB

    digests = find_digests(store, cluster_id, list_past_days(now, _DAYS))
    if not digests:
        raise InvalidInput(
            f"no day of the last {_DAYS} is recorded in {store.root}",
            "Record the days with quota-ops record, as the how-to page usage shows.",
        )
    rates: dict[tuple[str, str], dict[str, float]] = defaultdict(dict)
    with open_digests([*digests.values()], dict.fromkeys(digests, 0)) as recorded:
        spans = [
            SpanRow(*series, number, None)
            for number, series in enumerate(recorded.list_series())
            if series.user_name is not None and series.client_id is not None
        ]
        for row in recorded.measure(spans):
            user = "" if row.user_name == ANONYMOUS else str(row.user_name)
            own = rates[user, str(row.client_id)]
            own[row.key] = max(row.p95, own.get(row.key, 0.0))
    return rates


class _Part(NamedTuple):
    """Days with the same limits, and the periods of each key in them."""

    days: Sequence[str]
    periods: Mapping[str, Sequence[Period]]

    def find_span(self, key: str, names: SeriesNames) -> Span:
        """Return the span of a series in these days."""
        time = Time(time_of(self.days[0]).start, time_of(self.days[-1]).end)
        periods = self.periods[key]
        decided = {find_limit(key, limits, names) for period in periods for limits in period.limits}
        quotas, values = {quota for quota, _ in decided}, [limit for _, limit in decided]
        if len(quotas) != 1 or not all(period.limits for period in periods):
            return Span(time, False, None, None)
        limit = None if None in values else max(value for value in values if value is not None)
        return Span(time, True, quotas.pop(), limit)


def _divide(days: Sequence[str], past: PastQuotas) -> list[_Part]:
    """Return the days in parts with the same limits."""
    whole = Time(time_of(days[0]).start, time_of(days[-1]).end)
    periods = {key: past.periods(key, *whole) for key in USED_KEYS}
    parts: dict[tuple[tuple[int, ...], ...], list[str]] = {}
    for day in days:
        touched = tuple(tuple(_list_touched(periods[key], time_of(day))) for key in USED_KEYS)
        parts.setdefault(touched, []).append(day)
    return [
        _Part(
            some,
            {
                key: [periods[key][at] for at in places]
                for key, places in zip(USED_KEYS, touched, strict=True)
            },
        )
        for touched, some in parts.items()
    ]


def _list_touched(periods: Sequence[Period], time: Time) -> Iterator[int]:
    """Yield the numbers of the periods that have a part of a time."""
    for number, period in enumerate(periods):
        if period.start < time.end and time.start < period.end:
            yield number
