"""Bounds a call that has no timeout of its own, such as the lookup of a host's addresses."""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

_Result = TypeVar("_Result")


def within(seconds: float, call: Callable[[], _Result]) -> _Result:
    """What a call returns or raises; TimeoutError when that takes longer.

    A call that takes longer goes on in a thread that nobody waits for, not even the process's end.
    """
    outcome: Future[_Result] = Future()

    def run() -> None:
        try:
            outcome.set_result(call())
        except BaseException as error:  # noqa: BLE001 - whatever it is, it belongs to the caller
            outcome.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return outcome.result(seconds)
