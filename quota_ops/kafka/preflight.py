"""The preflight: checks that the cluster can be reached and has the expected id."""

import logging
import time

from quota_ops.kafka.brokers import describe_by_bootstrap
from quota_ops.kafka.client.description import ClusterDescription
from quota_ops.kafka.client.oauth import get_token
from quota_ops.kafka.connection import Connection
from quota_ops.model.errors import ClusterTrouble, InvalidInput, WrongCluster
from quota_ops.model.moment import timed
from quota_ops.model.plans.policy import VerifyPolicy

_log = logging.getLogger(__name__)

_DEADLINE = 4.5
_FIRST = 0.75
"""Seconds of _DEADLINE in which kafka-python may describe the cluster."""


def preflight(
    connection: Connection, cluster_id: str | None, verify: VerifyPolicy = VerifyPolicy.EVERY_BROKER
) -> ClusterDescription:
    """Return a cluster's id and brokers, or raise an error with the cause within five seconds.

    With `VerifyPolicy.BOOTSTRAP` only the bootstrap address is queried, and a failure takes twice
    as long.

    Raises Unreachable, LoginFailed, InvalidInput (a certificate that cannot be read), and
    WrongCluster when `cluster_id` is given and the addresses belong to another cluster.
    """
    with timed(_log, logging.INFO, f"connection {connection.name}: preflight"):
        found = _describe_cluster(connection, alone=verify is VerifyPolicy.BOOTSTRAP)
    if cluster_id is not None and found.cluster_id != cluster_id:
        raise WrongCluster(
            f"cluster {connection.name}: expected the cluster {cluster_id}, but "
            f"{connection.properties['bootstrap.servers']} belongs to {found.cluster_id}.",
            f"Check bootstrap.servers ({connection.place('bootstrap.servers')}) and cluster_id "
            "in cluster.yaml. Nothing was read or changed.",
        )
    brokers = ", ".join(broker.label for broker in found.brokers)
    _log.info("connection %s: cluster %s, %s", connection.name, found.cluster_id, brokers)
    return found


def _describe_cluster(connection: Connection, *, alone: bool) -> ClusterDescription:
    """Describe the cluster by kafka-python; if that fails, librdkafka tries, or finds the cause.

    It only finds the cause if the bootstrap address is used `alone`, because it would connect to
    advertised addresses too.
    """
    until = time.monotonic() + _DEADLINE
    if connection.uses_tokens:
        get_token(connection)  # whose error is about the token, and not about the broker
    try:
        return describe_by_bootstrap(connection, _DEADLINE if alone else _FIRST, alone=alone)
    except (ClusterTrouble, InvalidInput) as error:
        trouble = error
    from quota_ops.kafka.librdkafka import explain_failures, query_cluster  # noqa: PLC0415 - 50 ms

    left = _DEADLINE if alone else until - time.monotonic()
    described, failures = query_cluster(connection, left)
    if alone:
        failures = [failure for failure in failures if failure.broker is None]
        raise (explain_failures(connection, failures, left) if failures else trouble) from None
    if described is None or not described.brokers:
        raise explain_failures(connection, failures, _DEADLINE)
    return described
