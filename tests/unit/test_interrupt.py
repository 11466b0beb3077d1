"""Ctrl-C, SIGTERM and SIGHUP leave the block that listens for them, whatever runs in it."""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest

from quota_ops.cli.interrupt import (
    SIGNALS,
    Interrupted,
    exit_code,
    format_interrupt,
    raise_on_signals,
)
from quota_ops.sql import embedded
from tests.signals import signals_taken


@pytest.fixture(autouse=True)
def _as_in_a_terminal() -> Iterator[None]:
    with signals_taken():
        yield


def interrupt(number: int = signal.SIGINT) -> None:
    """Send Ctrl-C or another signal, then wait."""
    os.kill(os.getpid(), number)
    time.sleep(5)


def swallowed() -> None:
    """Swallow the exception, as an event loop does with the failure of one task."""
    for _ in range(3):
        with suppress(KeyboardInterrupt):
            interrupt()
    time.sleep(5)


def said_otherwise() -> None:
    """Replace the exception, as a database does."""
    try:
        interrupt()
    except KeyboardInterrupt:
        raise RuntimeError("query interrupted") from None


def taken_for_another() -> None:
    """Convert the replaced exception back."""
    try:
        said_otherwise()
    except RuntimeError as error:
        raise KeyboardInterrupt from error


def in_a_finalizer() -> None:
    """Raise in a finalizer, whose exceptions Python drops."""

    class Open:
        def __del__(self) -> None:
            interrupt()

    Open()
    time.sleep(5)


WORKS = [interrupt, swallowed, said_otherwise, taken_for_another, in_a_finalizer]


@pytest.mark.parametrize("work", WORKS)
def test_it_is_heard(work: Callable[[], None], capfd: pytest.CaptureFixture[str]) -> None:
    """The block ends at once, with an interrupt and nothing else."""
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt), raise_on_signals():
        work()
    assert time.monotonic() - began < 4.5  # the work would take five
    assert capfd.readouterr() == ("", "")


def test_a_signal_is_named_though_others_say_it_otherwise() -> None:
    """The stage sees DuckDB's error as an interrupt, and the caller sees SIGTERM."""

    def terminated() -> None:
        try:
            interrupt(signal.SIGTERM)
        except KeyboardInterrupt:
            raise KeyboardInterrupt from None

    with pytest.raises(Interrupted) as error, raise_on_signals():
        terminated()
    assert error.value.number == signal.SIGTERM


def test_the_engine_is_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    """DuckDB's own interrupt error becomes an interrupt again."""
    monkeypatch.setattr(
        "quota_ops.cli.interrupt._AGAIN", 60
    )  # a second one would replace the error
    query = "SELECT count(*) FROM range(10000000) t(i), range(10000) u(j) WHERE (i * j) % 7 = 3"

    is_ready = threading.Event()

    def send_signal() -> None:
        is_ready.wait()
        time.sleep(0.5)  # on a busy machine DuckDB takes a while to begin
        os.kill(os.getpid(), signal.SIGTERM)

    def run_query() -> None:
        with embedded.open_database(threads=1) as db:
            db.sql("SELECT 1").to_arrow_table()  # the signal must not interrupt its imports
            threading.Thread(target=send_signal).start()
            prepared = db.sql(query)
            is_ready.set()
            prepared.to_arrow_table()

    with pytest.raises(Interrupted) as error, raise_on_signals():
        run_query()
    assert error.value.number == signal.SIGTERM
    assert isinstance(error.value.__cause__, KeyboardInterrupt)


def test_cleaning_up_is_left_in_peace() -> None:
    """After an interrupt all cleanup code runs, even if a part of it fails."""
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

    with pytest.raises(KeyboardInterrupt), raise_on_signals():
        work()
    assert done == ["closed"]


def test_nothing_is_left_behind() -> None:
    """After the block the signals have their earlier meaning, and no further one arrives."""
    signals = (*SIGNALS, signal.SIGALRM)
    before = [signal.getsignal(one) for one in signals]
    with suppress(KeyboardInterrupt), raise_on_signals():
        interrupt()
    time.sleep(0.1)
    assert [signal.getsignal(one) for one in signals] == before
    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)


@pytest.mark.parametrize("number", SIGNALS)
def test_which_signal(number: int) -> None:
    """Each signal ends the block once, and the exit code is 128 plus its number."""
    with pytest.raises(Interrupted) as caught, raise_on_signals(), raise_on_signals():
        interrupt(number)
    assert exit_code(caught.value) == 128 + number
    words = {signal.SIGTERM: "interrupted by SIGTERM", signal.SIGHUP: "interrupted by SIGHUP"}
    assert format_interrupt(caught.value) == words.get(signal.Signals(number), "interrupted")


@pytest.mark.parametrize("number", SIGNALS)
def test_what_the_signal_means_already(number: int) -> None:
    """A signal that is ignored, as in the background of a shell or under nohup, stays ignored."""
    before = signal.signal(number, signal.SIG_IGN)
    with raise_on_signals():
        assert signal.getsignal(number) is signal.SIG_IGN
    signal.signal(number, before)


def test_a_program_that_wants_the_default() -> None:
    """A SIGINT handler that was reset to the default stays as it is."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    with raise_on_signals():
        assert signal.getsignal(signal.SIGINT) is signal.SIG_DFL


def test_another_thread() -> None:
    """Only the main thread receives signals; elsewhere nothing is promised and nothing fails."""
    ran: list[bool] = []

    def work() -> None:
        with raise_on_signals():
            ran.append(True)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert ran == [True]
