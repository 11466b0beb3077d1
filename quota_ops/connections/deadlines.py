"""A deadline for a call of a library that has none, or whose limits each byte renews."""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

_Result = TypeVar("_Result")


def call_within(seconds: float, call: Callable[[], _Result]) -> _Result:
    """Return the result of a call or raise its exception; TimeoutError after `seconds`."""
    return start_call(call).result(seconds)


def start_call(call: Callable[[], _Result]) -> Future[_Result]:
    """Start a call in a daemon thread, which does not delay the end of the process."""
    outcome: Future[_Result] = Future()

    def run() -> None:
        try:
            outcome.set_result(call())
        except BaseException as error:  # noqa: BLE001 - every error is for the caller
            outcome.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return outcome
