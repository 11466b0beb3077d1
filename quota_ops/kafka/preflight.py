"""The preflight: checks that the cluster can be reached and has the expected id.

It uses confluent-kafka, because librdkafka logs within milliseconds why a connection fails.
kafka-python, which carries the quota calls, reports only that it could not connect.
"""

import logging
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from quota_ops.connections.deadlines import call_within
from quota_ops.kafka.brokers import describe_by_bootstrap
from quota_ops.kafka.client.deadlines import look_up_addresses
from quota_ops.kafka.client.description import ClusterDescription
from quota_ops.kafka.client.failures import Failure, collect_facts, find_cause
from quota_ops.kafka.client.oauth import get_token, parse_extensions
from quota_ops.kafka.client.tls import explain_distrust
from quota_ops.kafka.connection import Connection
from quota_ops.kafka.connection.settings import SETTINGS, map_to_confluent
from quota_ops.model.errors import ClusterTrouble, InvalidInput, Unreachable, WrongCluster
from quota_ops.model.moment import timed
from quota_ops.model.plans.policy import VerifyPolicy

_log = logging.getLogger(__name__)

_DEADLINE = 4.5
_LOOKUP, _FAREWELL = 0.2, 0.1
"""Seconds after _DEADLINE to find the lookup that hangs, and to end librdkafka's threads."""
_SILENCE = 3.0
_PATIENCE, _GLANCE = 1.0, 0.5
"""Seconds until brokers other than the controller are queried, and the timeout of each query."""
_NO_TOPIC = "quota-ops-preflight"
"""The topic in a metadata request, which otherwise lists all topics; it need not exist."""
_RETRY_SECONDS = 0.5
"""Seconds to retry after a temporary failure: another address may respond, or a port open."""


class _Log:
    """A logger that collects failures; only librdkafka's log contains the cause of each."""

    def __init__(self) -> None:
        self.failures: list[Failure] = []

    def log(self, _level: int, _format: str, _facility: str, _client: str, text: str) -> None:
        """Record a line if it reports a failed connection: `[thrd:NAME]: ADDRESS/...`."""
        failure = Failure.parse(text.partition("]: ")[2])
        if failure is not None:
            self.failures.append(failure)


def preflight(
    connection: Connection, cluster_id: str | None, verify: VerifyPolicy = VerifyPolicy.EVERY_BROKER
) -> ClusterDescription:
    """Return a cluster's id and brokers, or raise an error with the cause within five seconds.

    With `VerifyPolicy.BOOTSTRAP` only the bootstrap address is queried, and a failure takes twice
    as long.

    Raises Unreachable, LoginFailed, InvalidInput (a certificate that cannot be read), and
    WrongCluster when `cluster_id` is given and the addresses belong to another cluster.
    """
    alone = verify is VerifyPolicy.BOOTSTRAP
    with timed(_log, logging.INFO, f"connection {connection.name}: preflight"):
        found = _describe_by_bootstrap(connection) if alone else _describe_cluster(connection)
    if cluster_id is not None and found.cluster_id != cluster_id:
        raise WrongCluster(
            f"connection {connection.name}: expected the cluster {cluster_id}, but "
            f"{connection.properties['bootstrap.servers']} belongs to {found.cluster_id}.",
            f"Check bootstrap.servers ({connection.place('bootstrap.servers')}) and cluster_id "
            "in cluster.yaml. Nothing was read or changed.",
        )
    brokers = ", ".join(broker.label for broker in found.brokers)
    _log.info("connection %s: cluster %s, %s", connection.name, found.cluster_id, brokers)
    return found


def _describe_by_bootstrap(connection: Connection) -> ClusterDescription:
    """Describe the cluster without librdkafka, which would connect to advertised addresses too.

    After a failure, librdkafka finds the cause.
    """
    try:
        return describe_by_bootstrap(connection, _DEADLINE)
    except (ClusterTrouble, InvalidInput) as trouble:
        deadline = time.monotonic() + _DEADLINE
        _, failures = _query(connection)
        first = [failure for failure in failures if failure.broker is None]
        raise (_explain_failures(connection, first, deadline) if first else trouble) from None


def _describe_cluster(connection: Connection) -> ClusterDescription:
    deadline = time.monotonic() + _DEADLINE
    described, failures = _query(connection)
    if described is None or not described.brokers:
        raise _explain_failures(connection, failures, deadline)
    return described


def _query(connection: Connection) -> tuple[ClusterDescription | None, list[Failure]]:
    """Return librdkafka's description, and the failures that it logged until then."""
    log = _Log()
    try:
        return _query_cluster(connection, log), log.failures
    except KafkaException as error:
        raise explain_unusable(connection, error.args[0].str()) from None


def _query_cluster(connection: Connection, log: _Log) -> ClusterDescription | None:
    """Return confluent-kafka's description; None when it fails, with the cause in the log.

    This function ends the client, because its threads would retry while an error is handled. Only
    a lookup to which no name server responds may outlast it.
    """
    started = time.monotonic()
    options = {
        **build_options(connection),
        "socket.connection.setup.timeout.ms": int(_SILENCE * 1000),
        "allow.auto.create.topics": False,
        "reconnect.backoff.ms": 50,
    }
    client = [AdminClient(options, logger=log)]
    # On a busy machine, the token and the start of the client can take longer than the deadline.
    left = max(_DEADLINE - (time.monotonic() - started), _PATIENCE)
    try:
        return _describe(client[0], connection, log, left)
    finally:
        with suppress(TimeoutError):
            call_within(_FAREWELL, client.clear)


def _describe(
    client: AdminClient, connection: Connection, log: _Log, seconds: float
) -> ClusterDescription | None:
    began = time.monotonic()
    response = client.describe_cluster(request_timeout=seconds)
    servers = len(set(connection.properties["bootstrap.servers"].split(",")))
    waited = 0.0
    while not response.done() and not _is_hopeless(log.failures, servers, waited):
        client.poll(0.01)
        waited = time.monotonic() - began
        if _PATIENCE < waited < seconds - _GLANCE and (found := _query_any_broker(client)):
            return found
    if response.done() and response.exception() is None:
        return ClusterDescription.of(response.result().cluster_id, response.result().nodes)
    return None


def _query_any_broker(client: AdminClient) -> ClusterDescription | None:
    """Return the description from any broker; None when none can be reached yet.

    librdkafka sends DescribeCluster to the controller. KRaft names a random broker as controller,
    perhaps one that does not respond or that this machine cannot reach.
    """
    try:
        found = client.list_topics(topic=_NO_TOPIC, timeout=_GLANCE)
    except KafkaException:
        return None
    if not found.brokers:
        return None
    return ClusterDescription.of(str(found.cluster_id), found.brokers.values())


def build_options(connection: Connection) -> dict[str, Any]:
    """Return the options of confluent-kafka for a connection.

    A token costs a second, because its constructor checks for the token once a second.
    """
    options = map_to_confluent(connection.properties) | {"enable.metrics.push": False}
    if connection.uses_tokens:
        token = get_token(connection)
        extensions = parse_extensions(connection.properties)
        options["oauth_cb"] = lambda _: (token, time.time() + 60, "", extensions)
    return options


SILENT = logging.getLogger(f"{__name__}.silent")
"""A logger that drops librdkafka's lines, for clients whose failed requests have errors."""
SILENT.disabled = True


def _is_hopeless(failures: list[Failure], servers: int, waited: float) -> bool:
    """Return whether every bootstrap address has failed for a permanent reason."""
    tried = {failure.address: failure for failure in failures if failure.broker is None}
    return len(tried) >= servers and (
        waited > _RETRY_SECONDS or not any(find_cause(failure).passes for failure in tried.values())
    )


def _explain_failures(
    connection: Connection, failures: list[Failure], deadline: float
) -> ClusterTrouble:
    servers = connection.properties["bootstrap.servers"]
    if not failures and (host := _find_hanging_lookup(servers)):
        return Unreachable(
            f"connection {connection.name}: no name server responds for {host}.",
            "Check this machine's network and its name servers. Nothing was read or changed.",
        )
    if not failures:
        return Unreachable(
            f"connection {connection.name}: {servers} accepts "
            f"connections, but listed no live broker within {_DEADLINE:g} seconds.",
            "A broker that is starting, or has lost its controllers, responds this way. Try again.",
        )
    # Advertised addresses fail last; a wrong password explains more than another broker's timeout.
    lasting = [failure for failure in failures if not find_cause(failure).passes] or failures
    failure, why = lasting[-1], None
    if "certificate verify failed" in failure.words:  # librdkafka does not log why
        left = max(_LOOKUP, (deadline - time.monotonic()) / 2)  # to connect, and for TLS
        why = explain_distrust(connection.properties, failure.address, left)
    return find_cause(failure).describe(failure, collect_facts(connection, why))


def _find_hanging_lookup(servers: str) -> str | None:
    """Return the first host for which no name server responds."""
    for server in servers.split(","):
        host = server.rpartition("://")[2].rpartition(":")[0].strip("[] ")
        try:
            look_up_addresses(host, 0, _LOOKUP)
        except TimeoutError:
            return host
        except OSError:
            continue
    return None


_NO_PEM = ("PEM lib", "no certificate or crl found", "not in PEM format")
_PASSWORD = "ssl.key.password"  # noqa: S105 - a setting's name


def explain_unusable(connection: Connection, words: str) -> InvalidInput:
    """Return the error for `Failed to create admin client: ssl.key.location failed: error:...`."""
    name, _, why = words.partition("client: ")[2].partition(" failed: ")
    if name not in SETTINGS:
        return InvalidInput(f"{connection.source}: librdkafka rejects it: {words}.")
    start = f"{connection.place(name)}: {name} "
    if "key values mismatch" in why:
        return InvalidInput(f"{start}does not match the configured certificate.")
    if name.startswith("ssl.key.") and _is_encrypted(connection, name):
        if _PASSWORD in connection.lines:
            place = connection.place(_PASSWORD)
            return InvalidInput(
                f"{start}is encrypted with a password other than {_PASSWORD} in {place}."
            )
        return InvalidInput(f"{start}is encrypted, and {_PASSWORD} is not set.")
    if any(text in why for text in _NO_PEM):
        what = "key" if name.startswith("ssl.key.") else "certificate"
        return InvalidInput(f"{start}contains no {what} in PEM format.")
    return InvalidInput(f"{start}cannot be used: {why}.")


def _is_encrypted(connection: Connection, name: str) -> bool:
    value = connection.properties[name]
    text = value if name.endswith(".pem") else Path(value).read_text("utf-8", errors="replace")
    return "ENCRYPTED" in text
