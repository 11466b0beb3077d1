"""A kafka-python connection to one broker; its errors show whether a request was sent."""

import logging
import threading
import time
from collections.abc import Sequence
from copy import copy
from ssl import SSLContext
from typing import Any

from kafka.errors import (
    IncompatibleBrokerVersion,
    KafkaConnectionError,
    KafkaError,
    KafkaTimeoutError,
    RequestTimedOutError,
    SaslAuthenticationFailedError,
    UnsupportedSaslMechanismError,
)

from quota_ops.kafka.client.deadlines import build_lookup_url
from quota_ops.kafka.client.description import Broker
from quota_ops.kafka.client.kafka_python import (
    AbstractTokenProvider,
    ClosingSelector,
    LoggedClient,
    MetadataRequest,
)
from quota_ops.kafka.client.oauth import get_token, parse_extensions
from quota_ops.kafka.client.tls import build_tls_context
from quota_ops.kafka.connection import Connection
from quota_ops.kafka.connection.settings import map_to_kafka_python
from quota_ops.model.errors import (
    ClusterTrouble,
    InvalidInput,
    LoginFailed,
    Unreachable,
    WrongCluster,
)
from quota_ops.model.runs.verification import BOOTSTRAP, ONLY_BOOTSTRAP

_NODE = "bootstrap-0"
"""kafka-python's name for the first bootstrap address."""
TIMEOUTS = (KafkaTimeoutError, RequestTimedOutError)
"""The exceptions of a request to which no response arrived in time."""
_REFUSALS = (SaslAuthenticationFailedError, UnsupportedSaslMechanismError)


class ResponseLost(Exception):
    """A request was sent and no response arrived; the message contains the reason."""


class _Cause(threading.local):
    """The first exception that kafka-python logged in this thread since the last reset to None."""

    first: Exception | None = None


class _Causes(logging.Handler):
    """Keeps the first exception that kafka-python logs; the one it raises later has no cause."""

    def emit(self, record: logging.LogRecord) -> None:
        for value in record.args or ():
            if isinstance(value, Exception) and _cause.first is None:
                _cause.first = copy(value)  # without its traceback, which references the connection


_cause = _Cause()
_logger = logging.getLogger("kafka")
_logger.addHandler(_Causes(logging.WARNING))
_logger.propagate = False  # quota-ops reports the error itself, once
_logger.setLevel(logging.WARNING)  # at DEBUG it writes passwords and whole messages


def build_client(
    connection: Connection,
    brokers: Sequence[Broker],
    longest: float,
    *,
    lookups: float | None = None,
    largest: int = 2**31 - 1,
) -> LoggedClient:
    """Build a kafka-python client for these brokers; a request waits `longest` seconds at most.

    It looks up their hosts one by one, within `lookups` seconds in total (default: `longest`). A
    response of more than `largest` bytes closes the connection. Raises InvalidInput when the
    certificates can no longer be read.
    """
    return LoggedClient(
        **{
            **map_to_kafka_python(connection.properties),
            "ssl_context": _build_tls(connection),
            "sasl_oauth_token_provider": _Tokens(connection) if connection.uses_tokens else None,
            "bootstrap_servers": [broker.address for broker in brokers],
            "selector": ClosingSelector,
            "proxy_url": build_lookup_url((lookups or longest) / len(brokers)),
            "receive_message_max_bytes": largest,
            # Each request has a shorter timeout of its own; these must not end it earlier.
            "request_timeout_ms": longest * 1000,
            "socket_connection_setup_timeout_ms": longest * 1000,
        }
    )


class _Tokens(AbstractTokenProvider):  # type: ignore[misc]
    """The token provider that kafka-python calls to authenticate, and later to reauthenticate."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def token(self) -> str:
        """Return a valid token."""
        return get_token(self._connection)

    def extensions(self) -> dict[str, str]:
        """Return the SASL extensions."""
        return parse_extensions(self._connection.properties)


def _build_tls(connection: Connection) -> SSLContext | None:
    if "ssl" not in connection.protocol:
        return None
    try:
        return build_tls_context(connection.properties)
    except OSError as error:
        why = f"its certificates can no longer be used: {error.strerror}."
        raise InvalidInput(f"{connection.source}: {why}") from None


class BrokerClient:
    """A client of the broker at one address; it connects when it sends the first request.

    `longest` is the longest timeout, in seconds, of any request. Each new connection must lead to
    the cluster `cluster_id`, unless that is None. Not thread-safe.
    """

    def __init__(
        self, connection: Connection, broker: Broker, longest: float, cluster_id: str | None = None
    ) -> None:
        self._connection = connection
        self._broker = broker
        self._longest = longest
        self._cluster_id = cluster_id
        self._client: LoggedClient | None = None
        self._throttled_until = 0.0

    def send(self, request: Any, timeout: float) -> Any:
        """Send a request and return the response, or raise within about `timeout` seconds.

        If nothing was sent, raises Unreachable, LoginFailed, WrongCluster or ClusterTrouble (the
        broker does not support the request); otherwise ResponseLost. Waits first for the throttle
        time of the broker's last response, if that is no longer than `timeout`.
        """
        throttled = self._throttled_until - time.monotonic()
        if throttled > timeout:
            wait = f"throttles this client for {throttled:.3g} s, longer than the {timeout:.3g} s"
            why = f"{self._label} {wait} that the request may take."
            raise Unreachable(why, effect="Nothing was sent.")
        time.sleep(max(0.0, throttled))
        deadline = time.monotonic() + timeout
        client = self._connect(timeout)
        try:
            left = max(0.0, deadline - time.monotonic())
            response = client.send_and_receive(_NODE, request, timeout_ms=left * 1000)
        except IncompatibleBrokerVersion:
            raise self._explain_unsupported(request) from None
        except KafkaError as error:
            self.close()
            why = explain_error(error, timeout)
            raise ResponseLost(f"{self._label} did not respond: {why}.") from None
        self._throttled_until = time.monotonic() + response.throttle_time_ms / 1000
        return response

    def close(self) -> None:
        """Close the connection; the next request opens another."""
        if self._client is not None:
            self._client.close()
            self._client = None

    @property
    def _label(self) -> str:
        return f"connection {self._connection.name}: {self._broker.label}"

    def _connect(self, timeout: float) -> LoggedClient:
        deadline = time.monotonic() + timeout
        self._drop_if_lost()
        _cause.first = None
        if is_new := self._client is None:
            self._client = build_client(
                self._connection, (self._broker,), self._longest, lookups=timeout
            )
        try:
            self._client.await_ready(_NODE, timeout_ms=timeout * 1000)
        except KafkaError as error:
            cause = _cause.first or KafkaTimeoutError(error)
            self.close()
            raise self._explain_unreachable(cause, timeout) from None
        if is_new and self._cluster_id is not None:
            self._check_cluster(self._client, self._cluster_id, deadline - time.monotonic())
        return self._client

    def _check_cluster(self, client: LoggedClient, cluster_id: str, timeout: float) -> None:
        """Raise WrongCluster when a new connection leads to another cluster.

        The address may have changed since the preflight. The next request uses this connection or
        fails: kafka-python opens another one only when it polls.
        """
        request = MetadataRequest(topics=[])
        try:
            found = client.send_and_receive(_NODE, request, timeout_ms=max(0.0, timeout) * 1000)
            if not client.connected(_NODE):
                raise KafkaConnectionError("the broker closed the connection")
        except IncompatibleBrokerVersion:
            raise self._explain_unsupported(request) from None
        except KafkaError as error:
            self.close()
            raise self._explain_unreachable(error, timeout) from None
        if found.cluster_id != cluster_id:
            self.close()
            raise WrongCluster(
                f"connection {self._connection.name}: expected the cluster {cluster_id}, but "
                f"{self._broker.label} now belongs to {found.cluster_id}.",
                "Nothing was sent to that cluster. Find out why the address leads to it.",
            )

    def _drop_if_lost(self) -> None:
        """Close a client whose broker closed the connection: kafka-python would not recover."""
        if self._client is not None:
            self._client.poll(timeout_ms=0)
            if not self._client.connected(_NODE):
                self.close()

    def _explain_unsupported(self, request: Any) -> ClusterTrouble:
        call = type(request).__name__.removesuffix("Request")
        remedy = "Client quotas need Apache Kafka 2.6 or later, or a service with these calls."
        return ClusterTrouble(f"{self._label} does not support {call}.", remedy)

    def _explain_unreachable(self, cause: Exception, timeout: float) -> ClusterTrouble:
        refused = isinstance(cause, _REFUSALS) or "CERTIFICATE" in str(cause)
        return (LoginFailed if refused else Unreachable)(
            f"{self._label} cannot be reached: {explain_error(cause, timeout)}.",
            None
            if self._broker.id == BOOTSTRAP
            else f"The address is the one that the broker advertises. {ONLY_BOOTSTRAP}",
            effect="Nothing was sent.",
        )


def explain_error(cause: Exception, timeout: float) -> str:
    """Return why a request with this timeout, in seconds, failed, in kafka-python's words."""
    if isinstance(cause, TIMEOUTS):
        return f"timed out after {timeout:.3g} s"
    return str(cause.args[0]) if cause.args else type(cause).__name__
