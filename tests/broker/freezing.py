"""Brokers that are there and say nothing."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager

from quota_ops.sandbox.node import RunningNode


@contextmanager
def frozen(*nodes: RunningNode) -> Iterator[None]:
    """Brokers that take connections and do nothing."""
    for node in nodes:
        node.send(signal.SIGSTOP)
    try:
        yield
    finally:
        for node in nodes:
            node.send(signal.SIGCONT)
