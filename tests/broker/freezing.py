"""Brokers that are reachable but do not respond."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

from quota_ops.lab.kafka.node import RunningNode
from tests.looking import seen_in_time


@contextmanager
def frozen(*nodes: RunningNode) -> Iterator[None]:
    """Let brokers accept connections and do nothing."""
    try:
        freeze(*nodes)
        yield
    finally:
        for node in nodes:
            node.send(signal.SIGCONT)


def freeze(*nodes: RunningNode) -> None:
    """Stop nodes by SIGSTOP, and wait until they have stopped.

    On a busy machine a broker still replies for a while, until one of its threads takes the signal.
    """
    for node in nodes:
        node.send(signal.SIGSTOP)
    for node in nodes:
        if node.alive:
            wait_until_stopped(node.pid)


def wait_until_stopped(pid: int) -> None:
    """Wait until every thread of a process is stopped."""
    assert seen_in_time(partial(_moving, pid), set()) == set()


def _moving(pid: int) -> set[str]:
    """Return the states of threads that are not stopped; nothing on systems without /proc."""
    states = set()
    for thread in Path(f"/proc/{pid}/task").glob("*"):
        with suppress(OSError):  # it has ended
            states.add((thread / "stat").read_text().rpartition(")")[2].split()[0])
    return states - {"T"}
