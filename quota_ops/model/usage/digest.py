"""A digest of one day of use: for each broker and client, how long it used how much.

A day of 10,000 clients is half a megabyte, and digests of several days are merged by adding
seconds up. From a digest follows how long the use was above any limit, and any percentile. The
order of the samples is lost: what would have been delayed needs the samples.
"""

from collections.abc import Sequence
from typing import NamedTuple

from quota_ops.model.quotas.tables import derive_table
from quota_ops.model.usage.seen import Run
from quota_ops.model.usage.series import SeriesNames

BASE = 1.05
"""Each bucket ends at 1.05 times the end of the one before it, so that a percentile is wrong by
at most 2.5 percent."""


LARGEST_RATE = 1e18
"""A value from here on is not a rate: no network is as fast."""


class BucketRow(NamedTuple):
    """A row of BUCKETS: for how many seconds of a day the use of a client was in a bucket.

    Bucket `b` has the values above `1.05 ** (b - 1)`, up to `1.05 ** b`, in the unit of the key; a
    use of 0 has no bucket. The names are those that the broker counts by: `user_name` is None if
    users share, `client_id` if client ids share. `highest` is the highest value in the bucket, to
    seven digits. `throttled` is whether the broker throttled the client on that day at all, in each
    of its rows.

    Rows of 0 seconds are of a client whose samples were no numbers. A row without names is use of
    clients that are not known.
    """

    day: str
    broker: str
    key: str
    user_name: str | None
    client_id: str | None
    bucket: int | None
    seconds: int
    highest: float | None
    throttled: bool


BUCKETS = derive_table("buckets", BucketRow)
"""The use of a day, or of a part of it, a row for each broker, key, client and bucket."""


class DigestRow(NamedTuple):
    """A row of DIGEST: the rows of a broker, key and client in BUCKETS, as one.

    `idle` are the seconds without a bucket, `seconds` those of `bucket` and each bucket above it,
    up to the highest that was used.

    A row without names and bucket has no use: its `seen` states when the broker was seen, by the
    starts and ends of its runs, in seconds of the day. All other time is unknown. In time that was
    seen, a client without a row used nothing.
    """

    day: str
    broker: str
    key: str
    user_name: str | None
    client_id: str | None
    idle: int
    bucket: int | None
    seconds: tuple[int, ...]
    highest: float | None
    throttled: bool
    seen: tuple[int, ...] = ()


DIGEST = derive_table("digest", DigestRow)
"""The use of a day as it is stored, a row for each broker, key and client."""


class DelayedRow(NamedTuple):
    """A row of DELAYED: a series that a broker throttled on a day."""

    broker: str
    key: str
    user_name: str | None
    client_id: str | None


DELAYED = derive_table("delayed", DelayedRow)
"""The series that brokers throttled on a day."""


class UseRow(NamedTuple):
    """A row of USE: what a client used on one broker, in one span.

    The caller divides the time of a client into spans, for example one for each limit. `counted` is
    the number of seconds in which the broker counted its use; 0 if no sample was a number. It was
    at its limit for `at_limit_least` to `at_limit` seconds. `p50` and `p95` are percentiles of the
    counted time. Those of recorded days use the middle of a bucket as its rate, so they are wrong
    by 2.5 percent at most. `highest` is a lower bound of the true highest use: a sample is a mean,
    and there is none between two scrapes.
    """

    broker: str
    key: str
    user_name: str | None
    client_id: str | None
    span: int
    counted: float
    at_limit_least: float
    at_limit: float
    p50: float
    p95: float
    highest: float
    throttled: bool

    @property
    def names(self) -> SeriesNames:
        """The names by which the broker counted it."""
        return SeriesNames(self.user_name, self.client_id)


USE = derive_table("use", UseRow)
"""The use of each client on each broker in some days."""


class ShareRow(NamedTuple):
    """A row of SHARES: a series of those who share a limit, and the limit that they share now.

    A name that brokers do not count by is None; so is `present_limit` if they share none.
    """

    shared_by: str
    key: str
    user_name: str | None
    client_id: str | None
    rate_limit: float
    present_limit: float | None


SHARES = derive_table("shares", ShareRow)
"""The series that share limits, a row for each."""


class DelayRow(NamedTuple):
    """A row of DELAYS: how a limit would have delayed those who share it, on one broker.

    All but `highest`, which is a rate, are seconds. `starts` and `ends` are those of the runs in
    which the broker was seen, after the first sample of those clients. The limit throttles for
    `least` at least, and for `delayed` if clients send later what they cannot send then; `longest`
    is the longest delay then. `at_present` is how long the use was at the present limit, which
    hides how much more the clients would have sent.
    """

    shared_by: str
    broker: str
    starts: tuple[int, ...]
    ends: tuple[int, ...]
    least: float
    delayed: float
    longest: float
    at_present: float
    highest: float

    @property
    def seen(self) -> Sequence[Run]:
        """The runs in which the broker was seen."""
        return [*zip(self.starts, self.ends, strict=True)]


DELAYS = derive_table("delays", DelayRow)
"""The delays that limits would have caused, a row for each limit and broker."""


class DigestedDay(NamedTuple):
    """A day and its digest, or why it has none.

    `series` are the clients that the brokers counted. `share` is the part of the day, from 0 to 1,
    in which all of these brokers were seen. `doubt` is what makes the stored use doubtful.
    """

    day: str
    series: int = 0
    brokers: int = 0
    share: float = 0.0
    why: str | None = None
    doubt: str | None = None
