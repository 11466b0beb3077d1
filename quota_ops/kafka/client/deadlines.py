"""Deadlines for calls of libraries without a timeout, and calls that run in the background.

The timeout of a request to a broker is in `kafka.cluster`.
"""

import socket
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

from kafka.errors import KafkaConnectionError, KafkaError

from quota_ops.connections.deadlines import call_within, start_call
from quota_ops.kafka.client.kafka_python import KafkaNetSocket

_Result = TypeVar("_Result")


def look_up_addresses(host: str, port: int, seconds: float) -> list[Any]:
    """Return the addresses of a host for TCP, as socket.getaddrinfo does.

    Raises OSError: TimeoutError when no name server responds, socket.gaierror for an unknown host.
    """
    try:
        return call_within(seconds, lambda: socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
    except UnicodeError:  # a label is empty or too long, so no name server is queried
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known") from None


def build_lookup_url(seconds: float) -> str:
    """Return a `proxy_url` that uses no proxy and limits a lookup to `seconds`."""
    return f"{_BoundedSocket.SCHEMES[0]}:{seconds}"


class _BoundedSocket(KafkaNetSocket):  # type: ignore[misc]
    SCHEMES = ("bounded",)

    def __init__(self, proxy_url: str) -> None:
        self._seconds = float(proxy_url.partition(":")[2])

    def dns_lookup(self, host: str, port: int) -> list[Any]:
        """Return the addresses of a host; users see the message of a KafkaConnectionError."""
        try:
            return look_up_addresses(host, port, self._seconds)
        except TimeoutError:
            words = f"no name server responded for {host} within {self._seconds:.3g} s"
        except OSError as error:
            words = f"the host {host} is not known: {error.strerror}"
        raise KafkaConnectionError(words)

    async def sock_connect(
        self, net: Any, sock: socket.socket, sockaddr: Any, timeout_at: float | None = None
    ) -> Any:
        """Connect a socket, or close it: kafka-python leaves that to the garbage collector."""
        try:
            return await super().sock_connect(net, sock, sockaddr, timeout_at=timeout_at)
        except KafkaError:
            sock.close()
            raise


def run_in_background(call: Callable[[], _Result], timeout: float) -> Callable[[], _Result | None]:
    """Run a call in a thread; return a function that waits for its result.

    That function waits until `timeout` seconds after this call at most. It returns None when the
    call has not finished by then, or has failed.
    """
    result, deadline = start_call(call), time.monotonic() + timeout

    def fetch() -> _Result | None:
        with suppress(Exception):
            return result.result(max(0.0, deadline - time.monotonic()))
        return None

    return fetch
