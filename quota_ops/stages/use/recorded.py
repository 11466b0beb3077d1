"""The use of recorded days, beside the limits of that time, from their digests."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from quota_ops.model.errors import InvalidInput
from quota_ops.model.quotas.quota import MEASURED_KEYS
from quota_ops.model.usage.recorded import GroupUse
from quota_ops.model.usage.seen import Run
from quota_ops.model.usage.series import SeriesNames, Time, time_of
from quota_ops.model.usage.use import AT_LIMIT
from quota_ops.precedence.resolution import ANONYMOUS
from quota_ops.stages.use.past_limits import PastQuotas, Period
from quota_ops.stages.use.spans import SeriesUse, Span, find_span
from quota_ops.store.history.digests import find_damaged, find_digests, list_past_days
from quota_ops.store.places.place import Place
from quota_ops.store.places.run_store import RunStore

if TYPE_CHECKING:
    from quota_ops.sql.embedded_usage import SummedDays

DAY = timedelta(days=1)
_DAYS = 30
_GROUP_DAYS = 28


@contextmanager
def open_recorded(
    digests: Mapping[str, Place], past: PastQuotas, *, by_day: bool = False
) -> "Iterator[RecordedDays]":
    """Open the use of days that have a digest, in parts with the same limits, or by day.

    Damaged digests are left out. Raises InvalidInput if they cannot be read for another reason.
    """
    with ExitStack() as stack:
        damaged: Mapping[str, str] = {}
        try:
            found = stack.enter_context(_open_parts(digests, past, by_day=by_day))
        except InvalidInput:
            if not (damaged := find_damaged(digests)):
                raise
            rest = {day: place for day, place in digests.items() if day not in damaged}
            found = stack.enter_context(_open_parts(rest, past, by_day=by_day))
        yield found._replace(troubles=damaged)


@contextmanager
def _open_parts(
    digests: Mapping[str, Place], past: PastQuotas, *, by_day: bool
) -> "Iterator[RecordedDays]":
    from quota_ops.sql.embedded_usage import open_digests  # DuckDB

    parts = _divide([*digests], past, by_day=by_day)
    numbers = {day: number for number, part in enumerate(parts) for day in part.days}
    with open_digests([*digests.values()], numbers) as summed:
        yield RecordedDays(summed, parts, [*digests])


class RecordedDays(NamedTuple):
    """What clients used on recorded days, beside the limits of that time.

    The order of samples is lost, so the highest limit of a day counts for all of it: no share is
    higher than the true one. How long use was at the limit at most follows from the lowest one.
    """

    summed: "SummedDays"
    parts: "Sequence[_Part]"
    days: Sequence[str]
    troubles: Mapping[str, str] = {}
    """Why other days are left out, by day."""

    def read_seen(self) -> Mapping[str, Mapping[str, Sequence[Run]]]:
        """Return when the use of each key is known, by broker, in seconds since 1970."""
        return self.summed.read_seen()

    def read_uses(self, key: str, measured: Iterable[SeriesUse] = ()) -> list[SeriesUse]:
        """Return the use of a key on these days and in other times together, by their spans."""
        from quota_ops.sql.embedded_usage import SpanRow  # DuckDB

        numbers: dict[tuple[SeriesNames, Span], int] = {}
        rows: list[SpanRow] = []
        for series in self.summed.list_series(key):
            names = SeriesNames(series.user_name, series.client_id)
            span = find_span(key, self.parts[series.part].periods[key], names)
            number = numbers.setdefault((names, span), len(numbers))
            surely, perhaps = (
                None if limit is None else AT_LIMIT * limit for limit in (span.limit, span.lowest)
            )
            rows.append(SpanRow(*series, number, surely, perhaps))
        others = [
            row._replace(span=numbers.setdefault((row.names, span), len(numbers)))
            for row, span in measured
        ]
        spans = [span for _, span in numbers]
        return [SeriesUse(row, spans[row.span]) for row in self.summed.measure(rows, others)]

    def read_days(
        self, wanted: Collection[tuple[str, SeriesNames]]
    ) -> dict[tuple[str, SeriesNames, str, str], float]:
        """Return the p95 of some series by key, names, broker and day; parts have to be days."""
        from quota_ops.sql.embedded_usage import SpanRow  # DuckDB

        rows = [
            SpanRow(*series, series.part)
            for series in self.summed.list_series()
            if (series.key, SeriesNames(*series[1:3])) in wanted
        ]
        return {
            (row.key, row.names, row.broker, self.parts[row.span].days[0]): row.p95
            for row in self.summed.measure(rows)
        }


def read_client_rates(
    store: RunStore, cluster_id: str, now: datetime
) -> dict[tuple[str, str], dict[str, float]]:
    """Return the p95 of each user with a client id on its busiest broker, by key.

    It is that of the recorded ones of the last 30 days. The use of a user or a client id alone is
    left out: nobody knows how it is divided. Raises InvalidInput for a damaged digest, and if no
    day is recorded.
    """
    digests = find_digests(store, cluster_id, list_past_days(now, _DAYS))
    if not digests:
        raise InvalidInput(
            f"no day of the last {_DAYS} is recorded in {store.root}",
            "Record the days with quota-ops record, as the how-to page usage shows.",
        )
    rates: dict[tuple[str, str], dict[str, float]] = defaultdict(dict)
    for (key, names), p95 in _read_rates(digests).items():
        if names.user is not None and names.client_id is not None:
            user = "" if names.user == ANONYMOUS else names.user
            rates[user, names.client_id][key] = p95
    return rates


def read_group_use(
    store: RunStore, cluster_id: str, at: str, names: Collection[SeriesNames]
) -> GroupUse:
    """Return the use of members of groups, from which their shares follow at a time (ISO 8601).

    It is that of the four weeks before the last Monday, from Monday noon (UTC) on: Sunday is
    recorded then, and shares change once a week. Raises InvalidInput for a damaged digest.
    """
    today = (datetime.fromisoformat(at).astimezone(UTC) - DAY / 2).date()
    monday = today - today.weekday() * DAY
    days = [f"{monday - ago * DAY}" for ago in range(_GROUP_DAYS, 0, -1)]
    digests = find_digests(store, cluster_id, days)
    return GroupUse(len(digests), f"{monday}", _read_rates(digests, names))


def _read_rates(
    digests: Mapping[str, Place], wanted: Collection[SeriesNames] | None = None
) -> dict[tuple[str, SeriesNames], float]:
    """Return the p95 of all or the wanted series in all of these days, on its busiest broker."""
    from quota_ops.sql.embedded_usage import SpanRow, open_digests  # DuckDB

    rates: dict[tuple[str, SeriesNames], float] = {}
    with open_digests([*digests.values()], dict.fromkeys(digests, 0), wanted) as recorded:
        spans = [SpanRow(*row, number) for number, row in enumerate(recorded.list_series())]
        for row in recorded.measure(spans):
            series = row.key, row.names
            rates[series] = max(row.p95, rates.get(series, 0.0))
    return rates


class _Part(NamedTuple):
    """Days with the same limits, and the periods of each key in them."""

    days: list[str]
    periods: Mapping[str, Sequence[Period]]


def _divide(days: Sequence[str], past: PastQuotas, *, by_day: bool) -> list[_Part]:
    """Return the days in parts with the same limits, or each day."""
    if not days:
        return []
    whole = Time(time_of(days[0]).start, time_of(days[-1]).end)
    periods = {key: past.periods(key, *whole) for key in MEASURED_KEYS}
    parts: dict[tuple[tuple[int, ...], ...] | str, _Part] = {}
    for day in days:
        touched = {key: tuple(_list_touched(periods[key], time_of(day))) for key in MEASURED_KEYS}
        numbers = tuple(touched.values())
        part = parts.setdefault(
            day if by_day else numbers,
            _Part([], {key: [periods[key][at] for at in own] for key, own in touched.items()}),
        )
        part.days.append(day)
    return [*parts.values()]


def _list_touched(periods: Sequence[Period], time: Time) -> Iterator[int]:
    """Yield the numbers of the periods that have a part of a time."""
    for number, period in enumerate(periods):
        if period.start < time.end and time.start < period.end:
            yield number
