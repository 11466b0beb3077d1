"""What is known of a stored value that the ledger does not know."""

from typing import NamedTuple


class Origin(NamedTuple):
    """Who put a value on the cluster, as far as it is known; it came there after `after`, if known.

    `after` is an ISO 8601 time.
    """

    words: str
    after: str | None = None


UNKNOWN = Origin("who set it, and when, is unknown")
