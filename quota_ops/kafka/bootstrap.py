"""A cluster that is asked by one bootstrap address: what brokers advertise may be out of reach."""

import time

from kafka.protocol.metadata import MetadataRequest

from quota_ops.kafka.client.broker_client import BrokerClient, Unanswered
from quota_ops.kafka.client.description import Broker, ClusterDescription
from quota_ops.kafka.connection import Connection
from quota_ops.model.errors import ClusterTrouble, Unreachable


def describe_by_bootstrap(connection: Connection, seconds: float) -> ClusterDescription:
    """What the first address of bootstrap.servers that answers says of the cluster.

    Raises what the last one came to: Unreachable, LoginFailed, InvalidInput.
    """
    deadline = time.monotonic() + seconds
    servers = list(dict.fromkeys(connection.properties["bootstrap.servers"].split(",")))
    for untried in range(len(servers), 0, -1):
        server = Broker.at(servers[-untried])
        try:
            return _describe(connection, server, (deadline - time.monotonic()) / untried)
        except ClusterTrouble as error:
            trouble = error
    raise trouble


def _describe(connection: Connection, server: Broker, limit: float) -> ClusterDescription:
    client = BrokerClient(connection, server, limit)
    try:
        told = client.ask(MetadataRequest(topics=[]), limit)
    except Unanswered as error:
        raise Unreachable(f"{error} Nothing was read or changed.") from None
    finally:
        client.close()
    nodes = (Broker(one.node_id, one.host, one.port) for one in told.brokers)
    return ClusterDescription(told.cluster_id, tuple(sorted(nodes)), server)
