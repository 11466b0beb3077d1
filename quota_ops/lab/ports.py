"""Ports of servers on this machine, which keep them across starts."""

import socket


def choose_port(wanted: int) -> int:
    """Return a free port of 127.0.0.1, which is the wanted one unless it is taken or 0."""
    try:
        with socket.create_server(("127.0.0.1", wanted)) as bound:
            return int(bound.getsockname()[1])
    except OSError:
        return choose_port(0)
