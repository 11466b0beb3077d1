"""The throttling that a plan's cuts would have caused in the last days, as far as it is known."""

from typing import NamedTuple

from msgspec import Struct

from quota_ops.model.quotas.quota import QUOTA_KEYS
from quota_ops.model.text import floor_percent

ENOUGH = 0.9
"""The part of the time that must be seen to judge a lower limit; with less it would be luck."""


class Delays(NamedTuple):
    """How a new limit would have delayed those who share it, on the broker where it delays longest.

    `least` and `delayed` are the ends of a range, in seconds: the throttling if clients drop what
    they cannot send, and if they send all of it later. `longest` is the longest delay then.
    `at_present` is for how many seconds the use was at its present limit: delays are in addition to
    the present ones. `share` is the part of the days, from 0 to 1, in which all brokers were seen:
    what happened in the rest is not in the range.
    """

    shared_by: str
    broker: str
    least: float
    delayed: float
    longest: float
    at_present: float
    highest: float
    share: float

    @property
    def is_whole(self) -> bool:
        """Whether all of the days were seen."""
        return self.share >= 1


class CutUse(NamedTuple):
    """A row of a plan that cuts the limit of clients, or limits them newly.

    `delays` has the delays of each group of clients that would share the new limit. `below` is how
    many more groups were not seen above it on the recorded part of the days, which is `recorded`,
    from 0 to 1. `why` is why the use of some, or of all, cannot be determined.
    """

    entity: str
    key: str
    delays: tuple[Delays, ...] = ()
    why: str | None = None
    below: int = 0
    recorded: float = 0.0

    @property
    def worst(self) -> Delays | None:
        """The group that would have been throttled the longest; None if no use is known."""
        return max(self.delays, key=lambda group: (group.delayed, group.highest), default=None)

    @property
    def doubt(self) -> str | None:
        """Why some of its use cannot be determined, or that too little of the time was seen."""
        shares = [group.share for group in self.delays] + [self.recorded] * bool(self.below)
        if self.why is None and shares and min(shares) < ENOUGH:
            return f"the use of {floor_percent(min(shares))} of that time was seen"
        return self.why

    @property
    def longest(self) -> float:
        """For how many seconds it would have throttled a group at most; 0 if no use is known."""
        return self.worst.delayed if self.worst else 0.0

    @property
    def is_bounded(self) -> bool:
        """Whether it cannot have throttled a group for longer than `longest`."""
        measured = QUOTA_KEYS[self.key].measured
        is_known = measured is not None and measured.is_whole
        return is_known and self.worst is not None and self.worst.is_whole


class Throttling(Struct, frozen=True):
    """The cuts of a plan, compared with the use of the days before `until`, an ISO 8601 time."""

    days: int
    until: str
    cuts: tuple[CutUse, ...] = ()
    trouble: str | None = None
    """Why no use is known, for example because Prometheus did not respond."""

    @property
    def is_partial(self) -> bool:
        """Whether the use of a cut, or a part of it, is not known."""
        return self.trouble is not None or any(cut.why for cut in self.cuts)


class ThrottledClient(NamedTuple):
    """A client that a broker throttled: the names that it counts by, and the quota that decides.

    `wait` is the mean delay of its throttled responses, in ms.
    """

    client: str
    key: str
    broker: str
    wait: float
    quota: str | None
    limit: float | None
    owner: str | None


class ThrottledNow(Struct, frozen=True):
    """The clients that brokers throttled in the minute before `at`, an ISO 8601 time.

    `clients` are those with the longest wait, on the broker where it is longest, of `count`. Of
    `brokers`, the registered ones, `seen` were scraped. `others` are scraped brokers that are not
    registered; None if labels do not show that. `trouble` is why it is unknown.
    """

    at: str
    clients: tuple[ThrottledClient, ...] = ()
    count: int = 0
    seen: int = 0
    brokers: int = 0
    trouble: str | None = None
    others: tuple[str, ...] | None = ()
