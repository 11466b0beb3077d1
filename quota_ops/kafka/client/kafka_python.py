"""The undocumented names of kafka-python that quota-ops uses; another version may change them.

Only this module imports them; tests/unit/test_kafka_python.py tests what quota-ops relies on.
"""

import logging
import selectors
import time
from functools import partial
from typing import Any

from kafka.net.compat import KafkaNetClient
from kafka.net.inet import KafkaNetSocket
from kafka.net.sasl.oauth import AbstractTokenProvider
from kafka.protocol.admin import (
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    ACLResourceType,
    AlterClientQuotasResponse,
    DescribeAclsRequest,
    DescribeClusterRequest,
    DescribeConfigsRequest,
    DescribeQuorumRequest,
    DescribeUserScramCredentialsRequest,
)
from kafka.protocol.admin.client_quotas import AlterClientQuotasRequest, DescribeClientQuotasRequest
from kafka.protocol.metadata import ApiVersionsRequest, MetadataRequest

__all__ = [
    "ACLOperation",
    "ACLPermissionType",
    "ACLResourcePatternType",
    "ACLResourceType",
    "AbstractTokenProvider",
    "AlterClientQuotasRequest",
    "AlterClientQuotasResponse",
    "ApiVersionsRequest",
    "DescribeAclsRequest",
    "DescribeClientQuotasRequest",
    "DescribeClusterRequest",
    "DescribeConfigsRequest",
    "DescribeQuorumRequest",
    "DescribeUserScramCredentialsRequest",
    "KafkaNetClient",
    "KafkaNetSocket",
    "MetadataRequest",
]


_log = logging.getLogger(__name__)


class ClosingSelector(selectors.DefaultSelector):
    """Closes all sockets that it waited for, when its client is closed.

    kafka-python leaves to the garbage collector the sockets with an unsent request, and those whose
    TLS handshake has not ended.
    """

    def __init__(self) -> None:
        super().__init__()
        self._sockets: set[Any] = set()

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        """Register a socket, and remember it."""
        self._sockets.add(fileobj)
        return super().register(fileobj, events, data)

    def close(self) -> None:
        """Close the selector and the sockets."""
        super().close()
        for waited_for in self._sockets:
            waited_for.close()


class LoggedClient(KafkaNetClient):  # type: ignore[misc]
    """Logs connections at INFO, and each request with its broker and its duration at DEBUG."""

    def await_ready(self, node_id: str, timeout_ms: float = 30000) -> None:
        """Wait until the broker is connected; log a new connection."""
        if self.connected(node_id):
            super().await_ready(node_id, timeout_ms=timeout_ms)
            return
        began = time.monotonic()
        try:
            super().await_ready(node_id, timeout_ms=timeout_ms)
        except Exception as error:
            self._write(logging.INFO, "not connected", node_id, began, error)
            raise
        self._write(logging.INFO, "connected", node_id, began)

    def send(self, node_id: str, request: Any, **options: Any) -> Any:
        """Send a request, and return the future of its response."""
        future = super().send(node_id, request, **options)
        if _log.isEnabledFor(logging.DEBUG):
            name = type(request).__name__.removesuffix("Request")
            future.add_both(partial(self._log_end, name, node_id, time.monotonic()))
        return future

    def _log_end(self, name: str, node_id: str, began: float, end: object) -> None:
        self._write(
            logging.DEBUG, name, node_id, began, end if isinstance(end, Exception) else None
        )

    def _write(
        self, level: int, what: str, node_id: str, began: float, error: Exception | None = None
    ) -> None:
        ms = (time.monotonic() - began) * 1000
        why = f": {type(error).__name__}" if error else ""
        _log.log(level, "%s, %s, %.0f ms%s", self._address(node_id), what, ms, why)

    def _address(self, node_id: str) -> str:
        known = self.cluster.bootstrap_brokers()
        return next(
            (f"{broker.host}:{broker.port}" for broker in known if broker.node_id == node_id),
            node_id,
        )
