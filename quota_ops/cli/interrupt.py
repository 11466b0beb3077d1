"""Ctrl-C ends a command, though what it calls may keep the interrupt to itself."""

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import click

INTERRUPTED = 130

_AGAIN = 0.02
"""Seconds until an interrupt that nobody heard is raised again."""


@contextmanager
def heard() -> Iterator[None]:
    """Raise KeyboardInterrupt from Ctrl-C until it has left the block.

    The event loop of kafka-python takes an interrupt for the failure of one task and goes on, or
    waits for that task; DuckDB says it as an error of its own. So it is raised again and again,
    but not while one is being handled: cleaning up is left in peace. Where the signal is ignored,
    as in the background of a shell, it stays so.
    """
    before = signal.getsignal(signal.SIGINT)
    if not callable(before) or threading.current_thread() is not threading.main_thread():
        yield
        return
    interrupted = False

    def interrupt(_number: int, _frame: object) -> None:
        nonlocal interrupted
        interrupted = True
        signal.setitimer(signal.ITIMER_REAL, _AGAIN)
        if not _is_handled():
            raise KeyboardInterrupt

    alarm = signal.signal(signal.SIGALRM, interrupt)
    signal.signal(signal.SIGINT, interrupt)
    tell = sys.unraisablehook
    sys.unraisablehook = partial(_unless_interrupt, tell)
    try:
        yield
    except click.exceptions.Exit:
        raise
    except Exception as error:
        if interrupted:
            raise KeyboardInterrupt from error
        raise
    finally:
        signal.signal(signal.SIGINT, before)
        signal.signal(signal.SIGALRM, signal.SIG_IGN)
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, alarm)
        sys.unraisablehook = tell


@contextmanager
def naming(run: Path, keep_end: Callable[[], object]) -> Iterator[None]:
    """Where Ctrl-C ends the block, name its run, keep how that ended, and exit with 130."""
    try:
        with heard():
            yield
    except KeyboardInterrupt:
        click.echo(f"interrupted; the run is in {run}", err=True)
        keep_end()
        raise click.exceptions.Exit(INTERRUPTED) from None


def _is_handled() -> bool:
    """Whether an interrupt is on its way out, through whatever it met there."""
    error = sys.exception()
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__context__
    return error is not None


def _unless_interrupt(tell: Callable[[Any], object], lost: Any) -> None:
    """Tell what was lost in a finalizer or a callback; an interrupt is not, it comes again."""
    if lost.exc_type is not KeyboardInterrupt:
        tell(lost)
