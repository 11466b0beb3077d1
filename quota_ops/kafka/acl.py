"""The permissions that the quota calls need, and the command that grants one.

Source: KafkaApis.handleDescribeClientQuotasRequest, ControllerApis.handleAlterClientQuotas.
"""

import shlex

from quota_ops.kafka.connection import Connection
from quota_ops.model.errors import NotAuthorized

CLUSTER_AUTHORIZATION_FAILED = 31
"""The error code of a request whose login lacks the operation."""

DESCRIBE = "Describe"
"""To list users and ACLs."""
DESCRIBE_CONFIGS = "DescribeConfigs"
ALTER_CONFIGS = "AlterConfigs"
"""It implies DescribeConfigs."""

_CALLS = {DESCRIBE_CONFIGS: "describe", ALTER_CONFIGS: "alter"}


def not_authorized(connection: Connection, operation: str) -> NotAuthorized:
    """The error of a login that lacks an operation on the resource Cluster."""
    return NotAuthorized(
        f"cluster {connection.name}: {connection.principal} may not {_CALLS[operation]} client "
        f"quotas: it needs {operation} on the resource Cluster. Nothing was changed.",
        f"An administrator grants it by:\n    {grant_command(connection, operation)}",
    )


def grant_command(connection: Connection, operation: str) -> str:
    """The command line of Kafka's own tool that grants an operation on the resource Cluster."""
    words = ("--add", "--allow-principal", connection.principal, "--operation", operation)
    servers = connection.properties["bootstrap.servers"]
    return (
        f"kafka-acls.sh --bootstrap-server {shlex.quote(servers)} "
        f"--command-config ADMIN.properties {shlex.join(words)} --cluster"
    )
