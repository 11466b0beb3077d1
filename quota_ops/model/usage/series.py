"""A series of use: the names by which brokers count it, and a period."""

from datetime import UTC, datetime, timedelta
from functools import cache
from typing import NamedTuple


class SeriesNames(NamedTuple):
    """The names by which brokers count use; None where they count all together."""

    user: str | None
    client_id: str | None


class Time(NamedTuple):
    """A period: the time after `start`, up to and including `end`."""

    start: datetime
    end: datetime


@cache  # each series of each day has it
def time_of(day: str) -> Time:
    """Return the time of a day in UTC."""
    start = datetime.fromisoformat(day).replace(tzinfo=UTC)
    return Time(start, start + timedelta(days=1))
