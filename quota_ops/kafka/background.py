"""Something that is asked beside the calls that matter, and that must never hurt them."""

import time
from collections.abc import Callable
from contextlib import suppress
from threading import Thread
from typing import TypeVar

Told = TypeVar("Told")


def aside(ask: Callable[[], Told], timeout: float) -> Callable[[], Told | None]:
    """Ask in a thread; what fetches the answer, None without any.

    Nothing that goes wrong is raised, and to fetch ends within the timeout, in seconds from now.
    """
    told: list[Told] = []
    deadline = time.monotonic() + timeout

    def in_thread() -> None:
        with suppress(Exception):
            told.append(ask())

    def fetch() -> Told | None:
        thread.join(max(0.0, deadline - time.monotonic()))
        return told[0] if told else None

    thread = Thread(target=in_thread, daemon=True)  # to resolve a host's name knows no deadline
    thread.start()
    return fetch
