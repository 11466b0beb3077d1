"""Looks up a host's addresses within a deadline; the system's own lookup has none."""

import socket
from typing import Any

from quota_ops.kafka.deadline import within


def addresses_of(host: str, port: int, seconds: float) -> list[Any]:
    """What socket.getaddrinfo tells of a host for TCP.

    Raises OSError: TimeoutError when no name server answers, socket.gaierror when none knows it.
    """
    return within(seconds, lambda: socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
