"""Work in a fork of this process, so that a second core takes it while this one goes on."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

_THREADS = Path("/proc/self/task")


@contextmanager
def forked(work: Callable[[], object]) -> Iterator[None]:
    """Do work that leaves files, and nothing else, while the block runs; at its end it is done.

    What fails in the fork is done once more here, so its error is raised as if there were none.
    A fork has no thread but the one that calls: beside others, and where nobody tells how many
    there are, the work is done before the block.
    """
    child = _fork(work) if _is_alone() else None
    if child is None:
        work()
        yield
        return
    try:
        yield
    finally:
        _, status = os.waitpid(child, 0)
    if status != 0:
        work()


def _fork(work: Callable[[], object]) -> int:
    child = os.fork()
    if child == 0:
        status = 1
        try:
            work()
            status = 0
        finally:
            os._exit(status)  # what is registered for the end is the parent's
    return child


def _is_alone() -> bool:
    return _THREADS.is_dir() and len(list(_THREADS.iterdir())) == 1
