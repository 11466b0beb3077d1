"""Ctrl-C, SIGTERM and SIGHUP end a command, even if a library suppresses the interrupt."""

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import click

from quota_ops.store.places.place import Place

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Ctrl-C; what `kill`, a cancelled CI job and Kubernetes send; a closed terminal."""

_AGAIN = 0.02
"""Seconds until an interrupt that has not left the block is raised again."""


class Interrupted(KeyboardInterrupt):
    """A signal that ends the command."""

    def __init__(self, number: int) -> None:
        super().__init__(f"interrupted by {signal.Signals(number).name}")
        self.number = number


@contextmanager
def raise_on_signals() -> Iterator[None]:
    """Raise Interrupted from a signal that ends commands until it has left the block.

    The event loop of kafka-python treats an interrupt as the failure of one task and continues, or
    waits for that task; DuckDB turns it into its own error. So it is raised repeatedly, except
    while one is being handled, so that cleanup can finish. An ignored signal (SIGINT in the
    background of a shell, SIGHUP under nohup) stays ignored.
    """
    before = {number: signal.getsignal(number) for number in SIGNALS if _ends_command(number)}
    if not before or threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []

    def interrupt(number: int, _frame: object) -> None:
        if number != signal.SIGALRM:
            came.append(number)
        signal.setitimer(signal.ITIMER_REAL, _AGAIN)
        if not _is_handled():
            raise Interrupted(came[0] if came else signal.SIGINT)

    alarm = signal.signal(signal.SIGALRM, interrupt)
    for number in before:
        signal.signal(number, interrupt)
    tell = sys.unraisablehook
    sys.unraisablehook = partial(_unless_interrupt, tell)
    try:
        yield
    except click.exceptions.Exit:
        raise
    except (Exception, KeyboardInterrupt) as error:
        if came and not isinstance(error, Interrupted):
            raise Interrupted(came[0]) from error
        raise
    finally:
        for number, kept in before.items():
            signal.signal(number, kept)
        signal.signal(signal.SIGALRM, signal.SIG_IGN)
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, alarm)
        sys.unraisablehook = tell


@contextmanager
def report_run_if_stopped(run: Place, keep_end: Callable[[], object]) -> Iterator[None]:
    """If a signal ends the block, report its run, record how the run ended, and exit."""
    try:
        with raise_on_signals():
            yield
    except KeyboardInterrupt as error:
        click.echo(f"{format_interrupt(error)}; the run is in {run}", err=True)
        keep_end()
        raise click.exceptions.Exit(exit_code(error)) from None


def exit_code(error: KeyboardInterrupt) -> int:
    """Return the exit code of a command that a signal ended: 128 plus its number, as in shells."""
    return 128 + (error.number if isinstance(error, Interrupted) else signal.SIGINT)


def format_interrupt(error: KeyboardInterrupt) -> str:
    """Return `interrupted`, with the name of the signal unless it was Ctrl-C."""
    by_signal = isinstance(error, Interrupted) and error.number != signal.SIGINT
    return str(error) if by_signal else "interrupted"


def _ends_command(number: int) -> bool:
    """Whether a signal may end a command; an ignored signal may not."""
    handler = signal.getsignal(number)
    # Python handles SIGINT from its start: if the default is set now, a program has reset it.
    return callable(handler) or (handler == signal.SIG_DFL and number != signal.SIGINT)


def _is_handled() -> bool:
    """Whether an interrupt, or an error raised because of one, is being handled now."""
    error = sys.exception()
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__context__
    return error is not None


def _unless_interrupt(tell: Callable[[Any], object], lost: Any) -> None:
    """Report an error in a finalizer or callback, unless it is an interrupt."""
    if not issubclass(lost.exc_type, KeyboardInterrupt):
        tell(lost)
