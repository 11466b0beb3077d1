"""A host is resolved, or the error gives the reason."""

import socket

import pytest

from quota_ops.kafka.client.deadlines import look_up_addresses


@pytest.mark.parametrize("host", ["a..b", "a" * 64, "ä" * 64])
def test_a_host_that_cannot_be_a_name(host: str) -> None:
    """A broker may advertise anything: a name that IDNA cannot encode is an unknown host."""
    with pytest.raises(socket.gaierror, match="Name or service not known"):
        look_up_addresses(host, 9092, 1.0)
