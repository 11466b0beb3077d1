"""Before anything else: whether the cluster can be reached, whether it is the right one.

confluent-kafka does this, because librdkafka's log says within milliseconds why a connection
fails; kafka-python, which carries the quota calls, says only that it could not connect.
"""

import logging
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from quota_ops.kafka.brokers import describe_by_bootstrap
from quota_ops.kafka.client.deadlines import addresses_of, within
from quota_ops.kafka.client.description import ClusterDescription
from quota_ops.kafka.client.failures import Failure, cause_of, facts_of
from quota_ops.kafka.client.oauth import extensions_of, token_of
from quota_ops.kafka.client.tls import distrust
from quota_ops.kafka.connection import Connection
from quota_ops.kafka.connection.settings import SETTINGS, confluent_options
from quota_ops.model.errors import ClusterTrouble, InvalidInput, Unreachable, WrongCluster
from quota_ops.model.moment import timed
from quota_ops.model.policy import VerifyPolicy

_log = logging.getLogger(__name__)

_DEADLINE = 4.5
_LOOKUP, _FAREWELL = 0.2, 0.1
"""How long it may take after that to say which lookup hangs, and to end librdkafka's threads."""
_SILENCE = 3.0
_PATIENCE, _GLANCE = 1.0, 0.5
"""When others than the controller are asked too, and for how long at a time."""
_NO_TOPIC = "quota-ops-preflight"
"""A topic to ask for, because to ask for none is to ask for all; it need not be there."""
_SECOND_THOUGHTS = 0.5
"""How long a failure that may pass is watched: a host has several addresses, a port opens."""


class _Log:
    """Takes librdkafka's log lines, the only place that has the cause of every failure."""

    def __init__(self) -> None:
        self.failures: list[Failure] = []

    def log(self, _level: int, _format: str, _facility: str, _client: str, text: str) -> None:
        """Keep a line if it tells of a failed connection: `[thrd:NAME]: ADDRESS/...`."""
        failure = Failure.parse(text.partition("]: ")[2])
        if failure is not None:
            self.failures.append(failure)


def preflight(
    connection: Connection,
    cluster_id: str | None,
    verify: VerifyPolicy = VerifyPolicy.EVERY_BROKER,
) -> ClusterDescription:
    """Ask a cluster for its id and brokers; every failure is named within five seconds.

    By `verify` the bootstrap address alone is asked, now and later; a failure takes twice as long.

    Raises Unreachable, LoginFailed, InvalidInput (a certificate that cannot be read), and
    WrongCluster when `cluster_id` is given and another cluster answers.
    """
    alone = verify is VerifyPolicy.BOOTSTRAP
    with timed(_log, logging.INFO, f"connection {connection.name}: preflight"):
        found = _describe_by_bootstrap(connection) if alone else _describe_cluster(connection)
    if cluster_id is not None and found.cluster_id != cluster_id:
        raise WrongCluster(
            f"cluster {connection.name}: expected the cluster {cluster_id}, but "
            f"{connection.properties['bootstrap.servers']} belongs to {found.cluster_id}.",
            f"Check bootstrap.servers ({connection.place('bootstrap.servers')}) and cluster_id "
            "in cluster.yaml. Nothing was read or changed.",
        )
    brokers = ", ".join(one.named for one in found.brokers)
    _log.info("connection %s: cluster %s, %s", connection.name, found.cluster_id, brokers)
    return found


def _describe_by_bootstrap(connection: Connection) -> ClusterDescription:
    """The same without librdkafka, which goes on to what brokers advertise; it tells the cause."""
    try:
        return describe_by_bootstrap(connection, _DEADLINE)
    except (ClusterTrouble, InvalidInput) as trouble:
        _, failures = _found(connection)
        first = [one for one in failures if one.broker is None]
        raise (_trouble(connection, first) if first else trouble) from None


def _describe_cluster(connection: Connection) -> ClusterDescription:
    described, failures = _found(connection)
    if described is None or not described.brokers:
        raise _trouble(connection, failures)
    return described


def _found(connection: Connection) -> tuple[ClusterDescription | None, list[Failure]]:
    """What librdkafka finds, and what failed until then."""
    log = _Log()
    try:
        return _ask(connection, log), log.failures
    except KafkaException as error:
        raise unusable(connection, error.args[0].str()) from None


def _ask(connection: Connection, log: _Log) -> ClusterDescription | None:
    """What confluent-kafka finds; None when there is nothing and the log says why.

    The client ends with this function: its threads would go on trying while an error is handled.
    Only a lookup that no name server answers may outlast it.
    """
    started = time.monotonic()
    options = {
        **confluent_options(connection.properties),
        **login_by_token(connection),
        "socket.connection.setup.timeout.ms": int(_SILENCE * 1000),
        "allow.auto.create.topics": False,
        "reconnect.backoff.ms": 50,
        "enable.metrics.push": False,
    }
    client = [AdminClient(options, logger=log)]
    left = _DEADLINE - (time.monotonic() - started)
    try:
        return _described(client[0], connection, log, left)
    finally:
        with suppress(TimeoutError):
            within(_FAREWELL, client.clear)


def _described(
    client: AdminClient, connection: Connection, log: _Log, seconds: float
) -> ClusterDescription | None:
    asked = time.monotonic()
    answer = client.describe_cluster(request_timeout=seconds)
    servers = len(set(connection.properties["bootstrap.servers"].split(",")))
    waited = 0.0
    while not answer.done() and not _hopeless(log.failures, servers, waited):
        client.poll(0.01)
        waited = time.monotonic() - asked
        if _PATIENCE < waited < seconds - _GLANCE and (found := _ask_anybody(client)):
            return found
    if answer.done() and answer.exception() is None:
        return ClusterDescription.of(answer.result().cluster_id, answer.result().nodes)
    return None


def _ask_anybody(client: AdminClient) -> ClusterDescription | None:
    """What any broker says; None when none can be reached yet.

    librdkafka asks the controller what a cluster is, and for that KRaft names a broker at random:
    one that is silent, or out of reach from here.
    """
    try:
        told = client.list_topics(topic=_NO_TOPIC, timeout=_GLANCE)
    except KafkaException:
        return None
    if not told.brokers:
        return None
    return ClusterDescription.of(str(told.cluster_id), told.brokers.values())


def login_by_token(connection: Connection) -> dict[str, Any]:
    """What lets confluent-kafka log in by a token, if that is how this connection does.

    It takes a second: its constructor looks only each second whether it was called.
    """
    if not connection.uses_tokens:
        return {}
    token = token_of(connection)
    extensions = extensions_of(connection.properties)
    return {"oauth_cb": lambda _: (token, time.time() + 60, "", extensions)}


def _hopeless(failures: list[Failure], servers: int, waited: float) -> bool:
    """Whether every address to start from has failed, for a reason that will not pass."""
    tried = {failure.address: failure for failure in failures if failure.broker is None}
    return len(tried) >= servers and (
        waited > _SECOND_THOUGHTS or not any(cause_of(failure).passes for failure in tried.values())
    )


def _trouble(connection: Connection, failures: list[Failure]) -> ClusterTrouble:
    servers = connection.properties["bootstrap.servers"]
    if not failures and (host := _not_looked_up(servers)):
        return Unreachable(
            f"cluster {connection.name}: no name server answers who {host} is.",
            "Check this machine's network and its name servers. Nothing was read or changed.",
        )
    if not failures:
        return Unreachable(
            f"cluster {connection.name}: {servers} takes "
            f"connections, but told of no live broker within {_DEADLINE:g} seconds.",
            "Brokers that start, or that have lost their controllers, answer like that.",
        )
    # What the cluster advertises fails last; a wrong password says more than a silent neighbour.
    telling = [one for one in failures if not cause_of(one).passes] or failures
    told, why = telling[-1], None
    if "certificate verify failed" in told.words:  # of which librdkafka does not say why
        why = distrust(connection.properties, told.address, _LOOKUP)
    return cause_of(told).describe(told, facts_of(connection, why))


def _not_looked_up(servers: str) -> str | None:
    """The first host for which no name server answers at all."""
    for server in servers.split(","):
        host = server.rpartition("://")[2].rpartition(":")[0].strip("[] ")
        try:
            addresses_of(host, 0, _LOOKUP)
        except TimeoutError:
            return host
        except OSError:
            continue
    return None


_NO_PEM = ("PEM lib", "no certificate or crl found", "not in PEM format")
_PASSWORD = "ssl.key.password"  # noqa: S105 - a setting's name


def unusable(connection: Connection, words: str) -> InvalidInput:
    """The error for `Failed to create admin client: ssl.key.location failed: error:...`."""
    name, _, why = words.partition("client: ")[2].partition(" failed: ")
    if name not in SETTINGS:
        return InvalidInput(f"{connection.source}: librdkafka does not take it: {words}.")
    told = f"{connection.place(name)}: {name} "
    if "key values mismatch" in why:
        return InvalidInput(f"{told}is not the key of the certificate beside it.")
    if name.startswith("ssl.key.") and _is_locked(connection, name):
        if _PASSWORD in connection.lines:
            place = connection.place(_PASSWORD)
            return InvalidInput(f"{told}is locked, and not by the {_PASSWORD} of {place}.")
        return InvalidInput(f"{told}is locked, and {_PASSWORD} is not set.")
    if any(one in why for one in _NO_PEM):
        what = "key" if name.startswith("ssl.key.") else "certificate"
        return InvalidInput(f"{told}holds no {what} in PEM.")
    return InvalidInput(f"{told}cannot be used: {why}.")


def _is_locked(connection: Connection, name: str) -> bool:
    value = connection.properties[name]
    text = value if name.endswith(".pem") else Path(value).read_text("utf-8", errors="replace")
    return "ENCRYPTED" in text
