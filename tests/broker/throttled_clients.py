"""Clients that measure how a broker throttles them, without waiting for it."""

import select
import socket
import time
from contextlib import ExitStack, closing

from kafka.net.compat import KafkaNetClient
from kafka.protocol.admin.topics import CreateTopicsRequest
from kafka.protocol.metadata import ApiVersionsRequest

from quota_ops.lab.kafka.broker import RunningBroker
from tests.broker_config import password_of

PARTITIONS = 40
WINDOWS = 2
"""Seconds' worth of its rate that a client may spend at once."""
ASKED = 5
"""Requests after which a client that is held back knows it."""
API_VERSIONS = bytes.fromhex("0000000a 0012 0000 00000001 ffff")
"""The smallest request: its length, key 18, version 0, a number, no client id."""
OFFERED = 0.02
"""Seconds after which one more connection is opened."""


def _client(quick: RunningBroker, user: str, client_id: str) -> KafkaNetClient:
    return KafkaNetClient(
        bootstrap_servers=quick.bootstrap("SASL"),
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="PLAIN",
        sasl_plain_username=user,
        sasl_plain_password=password_of(user),
        client_id=client_id,
    )


def mutation_rate(quick: RunningBroker, user: str, client_id: str) -> float | None:
    """Return how many partitions per second a client may create; None if there is no limit.

    The controller accepts a request for PARTITIONS partitions, even above the burst, as debt. It
    rejects the next request, and responds how long to wait until the debt is paid. Requests that
    are only validated count too.
    """
    request = CreateTopicsRequest(
        topics=[
            CreateTopicsRequest.CreatableTopic(
                name="new",
                num_partitions=PARTITIONS,
                replication_factor=1,
                assignments=[],
                configs=[],
            )
        ],
        timeout_ms=10_000,
        validate_only=True,
    )
    with closing(_client(quick, user, client_id)) as client:
        first = client.send_and_receive("bootstrap-0", request, timeout_ms=10_000)
        since = time.monotonic()
        second = client.send_and_receive("bootstrap-0", request, timeout_ms=10_000)
    assert first.topics[0].error_code == 0
    if second.topics[0].error_code == 0:
        return None
    assert second.topics[0].error_code == 89  # THROTTLING_QUOTA_EXCEEDED
    waited = time.monotonic() - since
    owed = float(second.throttle_time_ms) / 1000
    return PARTITIONS / (waited + owed + WINDOWS)


def is_throttled(quick: RunningBroker, user: str, client_id: str) -> bool:
    """Whether a client is throttled although it sends only requests that cost next to nothing."""
    request = ApiVersionsRequest(client_software_name="test", client_software_version="1")
    with closing(_client(quick, user, client_id)) as client:
        return any(
            client.send_and_receive("bootstrap-0", request, timeout_ms=10_000).throttle_time_ms
            for _ in range(ASKED)
        )


def connection_rate(quick: RunningBroker, address: str, seconds: float) -> float:
    """Return how many connections per second a broker accepts from an address, out of many more.

    The broker closes the others after a while, without a response.
    """
    port, taken = quick.nodes[0].ports["PLAINTEXT"], 0
    waiting, opened = select.poll(), {}
    end = time.monotonic() + seconds
    with ExitStack() as connections:
        while time.monotonic() < end:
            one = socket.create_connection(("127.0.0.1", port), source_address=(address, 0))
            connections.enter_context(one).sendall(API_VERSIONS)
            opened[one.fileno()] = one
            waiting.register(one, select.POLLIN)
            for number, _ in waiting.poll(OFFERED * 1000):
                waiting.unregister(number)
                taken += _is_answered(opened[number])
    return taken / seconds


def _is_answered(connection: socket.socket) -> bool:
    try:
        return connection.recv(4) != b""
    except ConnectionResetError:
        return False
