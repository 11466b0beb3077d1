"""Whether a broker is ready: it has answered a DescribeClientQuotas."""

import socket

from quota_ops.kafka.cluster import open_cluster
from quota_ops.kafka.connection import Connection
from quota_ops.model.errors import ClusterTrouble


def listens(port: int) -> bool:
    """Return whether a process listens on a port of 127.0.0.1."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def describes(bootstrap: str, nodes: int) -> bool:
    """Return whether the cluster has that many nodes and each answers a DescribeClientQuotas."""
    text = f"bootstrap.servers={bootstrap}"
    connection = Connection.parse(text, name="sandbox", source="the sandbox")
    try:
        with open_cluster(connection, cluster_id=None, timeout=5.0) as cluster:
            for broker in cluster.brokers:
                cluster.describe(broker.id)
            return len(cluster.brokers) == nodes
    except ClusterTrouble:
        return False
