"""Looks up a host's addresses within a deadline; the system's own lookup has none."""

import socket
from typing import Any

from quota_ops.kafka.client.deadline import within


def addresses_of(host: str, port: int, seconds: float) -> list[Any]:
    """What socket.getaddrinfo tells of a host for TCP.

    Raises OSError: TimeoutError when no name server answers, socket.gaierror when none knows it.
    """
    try:
        return within(seconds, lambda: socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
    except UnicodeError:  # a part of it is empty or too long for a name: no name server is asked
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known") from None
