"""Work in a fork of this process, so that a second core takes it while this one goes on."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

_THREADS = Path("/proc/self/task")


@contextmanager
def forked(work: Callable[[], object]) -> Iterator[Callable[[], bool]]:
    """Do work that leaves files, and nothing else, while the block runs; at its end it is done.

    Gives what says whether it still goes on. What fails in the fork is done once more here, so its
    error is raised as if there were none. A fork has no thread but the one that calls: beside
    others, and where nobody tells how many there are, the work is done before the block. So it is
    where no process is left for a fork.
    """
    child = _fork(work) if _is_alone() else None
    if child is None:
        work()
        yield lambda: False
        return
    try:
        yield lambda: _goes_on(child)
    finally:
        done = _ended_well(child)
    if not done:
        work()


def _goes_on(child: int) -> bool:
    try:
        return os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None
    except ChildProcessError:
        return False


def _ended_well(child: int) -> bool:
    try:
        return os.waitpid(child, 0)[1] == 0
    except ChildProcessError:  # who started us ignores SIGCHLD, so the kernel keeps no status
        return False


def _fork(work: Callable[[], object]) -> int | None:
    try:
        child = os.fork()
    except OSError:
        return None
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
