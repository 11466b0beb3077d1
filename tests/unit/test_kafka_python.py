"""The undocumented parts of kafka-python that quota-ops relies on."""

import ast
import inspect
from importlib.metadata import version
from pathlib import Path

import pytest

from quota_ops.kafka.client import kafka_python
from quota_ops.kafka.client.kafka_python import (
    AbstractTokenProvider,
    KafkaNetClient,
    KafkaNetSocket,
)

ROOM = Path(kafka_python.__file__).parents[1]
CHANGED = (
    f"kafka-python {version('kafka-python')} changed what quota_ops/kafka/client/kafka_python.py "
    "lists: adapt its users, or pin the version before"
)


def test_one_module_knows_the_undocumented_parts() -> None:
    """No other module imports kafka.net or kafka.protocol."""
    importers = {
        path.name
        for path in ROOM.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.ImportFrom)
        and (node.module or "").startswith(("kafka.net", "kafka.protocol"))
    }

    assert importers == {"kafka_python.py"}


@pytest.mark.parametrize(
    ("method", "arguments"),
    [
        (KafkaNetClient.send_and_receive, ["node_id", "request", "timeout_ms"]),
        (KafkaNetClient.await_ready, ["node_id", "timeout_ms"]),
        (KafkaNetClient.send, ["node_id", "request"]),
        (KafkaNetClient.connected, ["node_id"]),
        (KafkaNetClient.poll, ["timeout_ms"]),
        (KafkaNetClient.close, []),
        (KafkaNetSocket.dns_lookup, ["host", "port"]),
        (KafkaNetSocket.sock_connect, ["net", "sock", "sockaddr", "timeout_at"]),
        (AbstractTokenProvider.token, []),
        (AbstractTokenProvider.extensions, []),
    ],
)
def test_methods_take_what_they_are_given(method: object, arguments: list[str]) -> None:
    """The methods that quota-ops calls or replaces still have the parameters that it passes."""
    assert callable(method)
    found = list(inspect.signature(method).parameters)[1:]

    assert found[: len(arguments)] == arguments, CHANGED


@pytest.mark.parametrize(
    "name", [one for one in kafka_python.__all__ if one.endswith(("Request", "Response"))]
)
def test_messages_have_versions(name: str) -> None:
    """Each message can still be encoded: it has an API key and versions."""
    message = getattr(kafka_python, name)

    assert isinstance(message.API_KEY, int), CHANGED
    assert message.min_version <= message.max_version, CHANGED
