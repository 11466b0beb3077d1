"""A series of use: the names by which brokers count it, and its values in a period."""

from datetime import datetime
from typing import NamedTuple


class SeriesNames(NamedTuple):
    """The names by which brokers count use; None where they count all together."""

    user: str | None
    client_id: str | None


class SeriesUse(NamedTuple):
    """The use of a series on one broker in a time, in the unit of its quota key.

    `highest` is a lower bound of the highest use: between two scrapes it may have been higher.
    `counted` is for how many seconds there are samples.
    """

    broker: str
    names: SeriesNames
    median: float
    p95: float
    highest: float
    counted: float


class Time(NamedTuple):
    """A period: the time after `start`, up to and including `end`."""

    start: datetime
    end: datetime
