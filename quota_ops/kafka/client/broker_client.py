"""A kafka-python connection to one broker, of which a caller knows whether a request was sent."""

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

from quota_ops.kafka.client.deadlines import bounded
from quota_ops.kafka.client.description import Broker
from quota_ops.kafka.client.kafka_python import AbstractTokenProvider, MetadataRequest
from quota_ops.kafka.client.oauth import extensions_of, token_of
from quota_ops.kafka.client.request_log import LoggedClient
from quota_ops.kafka.client.tls import tls_context
from quota_ops.kafka.connection import Connection
from quota_ops.kafka.connection.settings import kafka_python_options
from quota_ops.model.errors import (
    ClusterTrouble,
    InvalidInput,
    LoginFailed,
    Unreachable,
    WrongCluster,
)
from quota_ops.model.verification import BOOTSTRAP, ONLY_BOOTSTRAP

_NODE = "bootstrap-0"
"""The name under which kafka-python knows the one address it is given."""
_TIMEOUTS = (KafkaTimeoutError, RequestTimedOutError)
_REFUSALS = (SaslAuthenticationFailedError, UnsupportedSaslMechanismError)


class Unanswered(Exception):
    """A request was sent and no answer came; the text says how it ended."""


class _Cause(threading.local):
    """The first exception that kafka-python logged in this thread since it was set to None."""

    first: Exception | None = None


class _Causes(logging.Handler):
    """Keeps the first exception that kafka-python logs: what it raises later has no cause."""

    def emit(self, record: logging.LogRecord) -> None:
        for value in record.args or ():
            if isinstance(value, Exception) and _cause.first is None:
                _cause.first = copy(value)  # without its traceback, which holds the connection


_cause = _Cause()
_logger = logging.getLogger("kafka")
_logger.addHandler(_Causes(logging.WARNING))
_logger.propagate = False  # a person is told once, and in our words
_logger.setLevel(logging.WARNING)  # at DEBUG it writes passwords and whole messages


def net_client(
    connection: Connection,
    brokers: Sequence[Broker],
    longest: float,
    *,
    lookups: float | None = None,
    largest: int = 2**31 - 1,
) -> LoggedClient:
    """A kafka-python client that knows these brokers alone, and waits `longest` seconds.

    It looks up their hosts one after the other, in `lookups` seconds together, or `longest`. An
    answer of more than `largest` bytes costs the connection. Raises InvalidInput when the
    certificates, which were there at the preflight, are not any more.
    """
    return LoggedClient(
        **{
            **kafka_python_options(connection.properties),
            "ssl_context": _tls(connection),
            "sasl_oauth_token_provider": _Tokens(connection) if connection.uses_tokens else None,
            "bootstrap_servers": [one.address for one in brokers],
            "proxy_url": bounded((lookups or longest) / len(brokers)),
            "receive_message_max_bytes": largest,
            # Ours end a request earlier; these only must not be earlier still.
            "request_timeout_ms": longest * 1000,
            "socket_connection_setup_timeout_ms": longest * 1000,
        }
    )


class _Tokens(AbstractTokenProvider):  # type: ignore[misc]
    """What kafka-python asks for a token, also when the login is to be renewed meanwhile."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def token(self) -> str:
        """A valid token."""
        return token_of(self._connection)

    def extensions(self) -> dict[str, str]:
        """What goes with it."""
        return extensions_of(self._connection.properties)


def _tls(connection: Connection) -> SSLContext | None:
    if "ssl" not in connection.protocol:
        return None
    try:
        return tls_context(connection.properties)
    except OSError as error:
        words = f"its certificates cannot be used any more: {error.strerror}."
        raise InvalidInput(f"{connection.source}: {words}") from None


class BrokerClient:
    """One broker, asked by its address; connected when it is first asked.

    `longest` is the longest timeout, in seconds, that it will be asked with. Each new connection
    must lead to the cluster `cluster_id`, unless that is None. Not for several threads.
    """

    def __init__(
        self,
        connection: Connection,
        broker: Broker,
        longest: float,
        cluster_id: str | None = None,
    ) -> None:
        self._connection = connection
        self._broker = broker
        self._longest = longest
        self._cluster_id = cluster_id
        self._client: LoggedClient | None = None
        self._throttled_until = 0.0

    def ask(self, request: Any, timeout: float) -> Any:
        """Send a request and return the response, or raise within about `timeout` seconds.

        Raises Unreachable, LoginFailed, WrongCluster, ClusterTrouble (the broker does not know the
        request) when nothing was sent; Unanswered when something was. A throttle that the broker
        asked for in its last answer is waited for first, if that takes no longer than `timeout`
        either.
        """
        throttled = self._throttled_until - time.monotonic()
        if throttled > timeout:
            wait = f"asks us to wait another {throttled:.3g} s, and we have {timeout:.3g} s"
            raise Unreachable(f"{self._told} {wait}. Nothing was sent.")
        time.sleep(max(0.0, throttled))
        deadline = time.monotonic() + timeout
        client = self._connected(timeout)
        try:
            left = max(0.0, deadline - time.monotonic())
            response = client.send_and_receive(_NODE, request, timeout_ms=left * 1000)
        except IncompatibleBrokerVersion:
            raise self._not_offered(request) from None
        except KafkaError as error:
            self.close()
            raise Unanswered(f"{self._told} gave no answer: {reason(error, timeout)}.") from None
        self._throttled_until = time.monotonic() + response.throttle_time_ms / 1000
        return response

    def close(self) -> None:
        """Close the connection; the next request opens another."""
        if self._client is not None:
            self._client.close()
            self._client = None

    @property
    def _told(self) -> str:
        return f"cluster {self._connection.name}: {self._broker.named}"

    def _connected(self, timeout: float) -> LoggedClient:
        deadline = time.monotonic() + timeout
        self._drop_if_lost()
        _cause.first = None
        if is_new := self._client is None:
            self._client = net_client(
                self._connection, (self._broker,), self._longest, lookups=timeout
            )
        try:
            self._client.await_ready(_NODE, timeout_ms=timeout * 1000)
        except KafkaError as error:
            cause = _cause.first or KafkaTimeoutError(error)
            self.close()
            raise self._not_connected(cause, timeout) from None
        if is_new and self._cluster_id is not None:
            self._check_cluster(self._client, self._cluster_id, deadline - time.monotonic())
        return self._client

    def _check_cluster(self, client: LoggedClient, cluster_id: str, timeout: float) -> None:
        """Raise WrongCluster where a new connection leads to another cluster.

        The address may lead elsewhere since the preflight. The next request goes by the same
        connection, or not at all: kafka-python opens none unless it polls.
        """
        request = MetadataRequest(topics=[])
        try:
            found = client.send_and_receive(_NODE, request, timeout_ms=max(0.0, timeout) * 1000)
            if not client.connected(_NODE):
                raise KafkaConnectionError("the broker hung up")
        except IncompatibleBrokerVersion:
            raise self._not_offered(request) from None
        except KafkaError as error:
            self.close()
            raise self._not_connected(error, timeout) from None
        if found.cluster_id != cluster_id:
            self.close()
            raise WrongCluster(
                f"cluster {self._connection.name}: expected the cluster {cluster_id}, but "
                f"{self._broker.named} belongs to {found.cluster_id} now.",
                "Nothing was sent to that one. Find out why the address leads there first.",
            )

    def _drop_if_lost(self) -> None:
        """Notice that the broker hung up meanwhile; this kafka-python client would not recover."""
        if self._client is not None:
            self._client.poll(timeout_ms=0)
            if not self._client.connected(_NODE):
                self.close()

    def _not_offered(self, request: Any) -> ClusterTrouble:
        call = type(request).__name__.removesuffix("Request")
        remedy = "Client quotas need Apache Kafka 2.6 or later, or a service that has these calls."
        return ClusterTrouble(f"{self._told} does not offer {call}.", remedy)

    def _not_connected(self, cause: Exception, timeout: float) -> ClusterTrouble:
        refused = isinstance(cause, _REFUSALS) or "CERTIFICATE" in str(cause)
        return (LoginFailed if refused else Unreachable)(
            f"{self._told} cannot be reached: {reason(cause, timeout)}. Nothing was sent.",
            None
            if self._broker.id == BOOTSTRAP
            else f"The address is the one that the broker advertises. {ONLY_BOOTSTRAP}",
        )


def reason(cause: Exception, timeout: float) -> str:
    """Why a request of so many seconds failed, in kafka-python's words."""
    if isinstance(cause, _TIMEOUTS):
        return f"timed out after {timeout:.3g} s"
    return str(cause.args[0]) if cause.args else type(cause).__name__
