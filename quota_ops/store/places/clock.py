"""Compares the clock of this machine with that of the run store."""

from datetime import UTC, datetime

from quota_ops.store.places.place import Place

TOLERANCE = 10.0
"""Seconds: more than a write takes, and than the rounding of a store's times."""


def measure_lead(written: Place) -> float:
    """Return how many seconds this machine's clock is ahead of the store's; negative if behind.

    `written` is a file that was written a moment ago. Returns 0 within `TOLERANCE`, and if the
    store does not show the time.
    """
    now = datetime.now(UTC)
    try:
        lead = (now - written.modified()).total_seconds()
    except OSError:
        return 0.0
    return lead if abs(lead) > TOLERANCE else 0.0
