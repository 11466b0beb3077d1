"""Deadlines for calls that have none of their own, and calls that run beside others."""

import socket
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from threading import Thread
from typing import Any, TypeVar

from kafka.errors import KafkaConnectionError

from quota_ops.kafka.client.kafka_python import KafkaNetSocket

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


def addresses_of(host: str, port: int, seconds: float) -> list[Any]:
    """What socket.getaddrinfo tells of a host for TCP.

    Raises OSError: TimeoutError when no name server answers, socket.gaierror when none knows it.
    """
    try:
        return within(seconds, lambda: socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
    except UnicodeError:  # a part of it is empty or too long for a name: no name server is asked
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known") from None


def bounded(seconds: float) -> str:
    """The `proxy_url` by which no proxy is used, and a lookup takes so many seconds at most."""
    return f"{_BoundedSocket.SCHEMES[0]}:{seconds}"


class _BoundedSocket(KafkaNetSocket):  # type: ignore[misc]
    SCHEMES = ("bounded",)

    def __init__(self, proxy_url: str) -> None:
        self._seconds = float(proxy_url.partition(":")[2])

    def dns_lookup(self, host: str, port: int) -> list[Any]:
        """The addresses of a host; the causes of a KafkaConnectionError are told to people."""
        try:
            return addresses_of(host, port, self._seconds)
        except TimeoutError:
            words = f"no name server answered for {host} within {self._seconds:.3g} s"
        except OSError as error:
            words = f"the host {host} is not known: {error.strerror}"
        raise KafkaConnectionError(words)


Told = TypeVar("Told")


def aside(ask: Callable[[], Told], timeout: float) -> Callable[[], Told | None]:
    """Ask in a thread; what fetches the answer, None without any.

    Nothing that goes wrong is raised, and to fetch ends within the timeout, in seconds from now.
    """
    told: list[Told] = []
    deadline = time.monotonic() + timeout

    def in_thread() -> None:
        with suppress(Exception):
            told.append(ask())

    def fetch() -> Told | None:
        thread.join(max(0.0, deadline - time.monotonic()))
        return told[0] if told else None

    thread = Thread(target=in_thread, daemon=True)  # to resolve a host's name knows no deadline
    thread.start()
    return fetch
