"""Ctrl-C, SIGTERM and SIGHUP leave the block that hears them, whatever stands in their way."""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest

from quota_ops.cli.interrupt import SIGNALS, Interrupted, exit_code, heard, interrupted_words
from tests.signals import signals_taken


@pytest.fixture(autouse=True)
def _as_in_a_terminal() -> Iterator[None]:
    with signals_taken():
        yield


def interrupt(number: int = signal.SIGINT) -> None:
    """Ctrl-C or another signal, and a while in which nothing else happens."""
    os.kill(os.getpid(), number)
    time.sleep(5)


def swallowed() -> None:
    """As an event loop does, to whom it is the failure of one task."""
    for _ in range(3):
        with suppress(KeyboardInterrupt):
            interrupt()
    time.sleep(5)


def said_otherwise() -> None:
    """As a database does."""
    try:
        interrupt()
    except KeyboardInterrupt:
        raise RuntimeError("query interrupted") from None


def in_a_finalizer() -> None:
    """Python itself drops what a finalizer raises."""

    class Open:
        def __del__(self) -> None:
            interrupt()

    Open()
    time.sleep(5)


@pytest.mark.parametrize("work", [interrupt, swallowed, said_otherwise, in_a_finalizer])
def test_it_is_heard(work: Callable[[], None], capfd: pytest.CaptureFixture[str]) -> None:
    """At once, as an interrupt and as nothing else."""
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt), heard():
        work()
    assert time.monotonic() - began < 2
    assert capfd.readouterr() == ("", "")


def test_cleaning_up_is_left_in_peace() -> None:
    """What is closed on the way out is closed, through errors of its own too."""
    done = []

    def work() -> None:
        try:
            interrupt()
        finally:
            try:
                int("")
            except ValueError:
                time.sleep(0.1)
                done.append("closed")

    with pytest.raises(KeyboardInterrupt), heard():
        work()
    assert done == ["closed"]


def test_nothing_is_left_behind() -> None:
    """After the block the signals mean what they meant before, and no other comes."""
    signals = (*SIGNALS, signal.SIGALRM)
    before = [signal.getsignal(one) for one in signals]
    with suppress(KeyboardInterrupt), heard():
        interrupt()
    time.sleep(0.1)
    assert [signal.getsignal(one) for one in signals] == before
    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)


@pytest.mark.parametrize("number", SIGNALS)
def test_which_signal(number: int) -> None:
    """Each ends the block once, and the exit code says which it was, as shells count."""
    with pytest.raises(Interrupted) as caught, heard(), heard():
        interrupt(number)
    assert exit_code(caught.value) == 128 + number
    words = {signal.SIGTERM: "interrupted by SIGTERM", signal.SIGHUP: "interrupted by SIGHUP"}
    assert interrupted_words(caught.value) == words.get(signal.Signals(number), "interrupted")


@pytest.mark.parametrize("number", SIGNALS)
def test_what_the_signal_means_already(number: int) -> None:
    """In the background of a shell or under nohup it is ignored, and a command does not hear it."""
    before = signal.signal(number, signal.SIG_IGN)
    with heard():
        assert signal.getsignal(number) is signal.SIG_IGN
    signal.signal(number, before)


def test_a_program_that_wants_the_default() -> None:
    """Python takes SIGINT when it starts; where it is default later, somebody wants it so."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    with heard():
        assert signal.getsignal(signal.SIGINT) is signal.SIG_DFL


def test_another_thread() -> None:
    """Signals are the main thread's alone; elsewhere nothing is promised, and nothing fails."""
    ran: list[bool] = []

    def work() -> None:
        with heard():
            ran.append(True)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert ran == [True]
