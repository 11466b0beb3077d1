"""Signals as a terminal leaves them."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager

from quota_ops.cli.interrupt import SIGNALS

_TAKEN = dict.fromkeys(SIGNALS, signal.SIG_DFL) | {signal.SIGINT: signal.default_int_handler}


@contextmanager
def signals_taken() -> Iterator[None]:
    """Restore the signals that end a command; a suite in the background ignores some of them.

    A process that the block starts receives them too.
    """
    before = {number: signal.signal(number, handler) for number, handler in _TAKEN.items()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
