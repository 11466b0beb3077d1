"""A series of use: the names by which brokers count it, and a period."""

from datetime import datetime
from typing import NamedTuple


class SeriesNames(NamedTuple):
    """The names by which brokers count use; None where they count all together."""

    user: str | None
    client_id: str | None


class Time(NamedTuple):
    """A period: the time after `start`, up to and including `end`."""

    start: datetime
    end: datetime
