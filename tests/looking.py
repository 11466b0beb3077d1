"""Polling until a value is as expected: a write is visible a moment later."""

import time
from collections.abc import Callable
from typing import TypeVar

Seen = TypeVar("Seen")


def seen_in_time(look: Callable[[], Seen], expected: object, seconds: float = 60.0) -> Seen:
    """Return the value as soon as it is as expected, or after so many seconds."""
    deadline = time.monotonic() + seconds
    while (seen := look()) != expected and time.monotonic() < deadline:
        time.sleep(0.01)
    return seen
