"""The ports of servers on this machine."""

import socket

from quota_ops.lab.process import choose_port


def test_a_server_keeps_its_port() -> None:
    """The port of the last start is chosen again, so that addresses stay valid, unless taken."""
    last = choose_port(0)
    assert choose_port(last) == last
    with socket.create_server(("127.0.0.1", last)):
        assert choose_port(last) != last
